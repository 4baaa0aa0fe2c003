#pragma once

#include <string>
#include <vector>

#include "domain/finding.h"
#include "logs/facts.h"

namespace diapason::cli {

// The parts of what `diapason logs` shows, in their order.
const std::vector<std::string>& LogSections();

// One part for a person; "" where there is nothing to say.
std::string LogSectionText(const std::string& section, const logs::LogFacts& facts,
                           const std::vector<Finding>& findings);

// The parts named, or all for none, as a JSON object.
std::string LogsJson(const std::vector<std::string>& sections, const logs::LogFacts& facts,
                     const std::vector<Finding>& findings);

}  // namespace diapason::cli
