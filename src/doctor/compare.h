#pragma once

#include <string>
#include <utility>
#include <vector>

#include "domain/finding.h"

namespace diapason::doctor {

// The facts in one host's report that should be the same on all hosts.
struct HostFacts {
  std::string host;
  std::vector<std::pair<std::string, std::string>> facts;
};

// Groups hosts by value, fact by fact, and names the outliers: a value that more than half of the
// hosts have is taken as right. Without such a majority the groups are listed. A missing value
// counts as "none". Adds a kFine finding for every fact that all share. Hosts with the same name
// are distinguished by a number.
std::vector<Finding> CompareHosts(const std::vector<HostFacts>& hosts);

}  // namespace diapason::doctor
