#pragma once

#include <string>
#include <utility>
#include <vector>

#include "domain/finding.h"

namespace diapason::doctor {

// What one host's report says that ought to be the same everywhere.
struct HostFacts {
  std::string host;
  std::vector<std::pair<std::string, std::string>> facts;
};

// Groups hosts by value, fact by fact, and names those that differ: the value that more than half
// of them have is right, whoever has another is the odd one out. Without such a majority nobody is
// right, and the groups are listed. What a host does not tell is the value "none". A finding that
// is fine for every fact that all share. Two hosts of one name are told apart by their number.
std::vector<Finding> CompareHosts(const std::vector<HostFacts>& hosts);

}  // namespace diapason::doctor
