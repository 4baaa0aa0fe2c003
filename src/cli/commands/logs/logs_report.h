#pragma once

#include <string>
#include <vector>

#include "logs/facts.h"
#include "logs/verdict.h"

namespace diapason::cli {

// The sections that `diapason logs` prints, in order.
const std::vector<std::string>& LogSections();

// One section as text; "" if it is empty.
std::string LogSectionText(const std::string& section, const logs::LogFacts& facts,
                           const logs::Diagnosis& diagnosis);

// The named sections, or all if none is named, as a JSON object.
std::string LogsJson(const std::vector<std::string>& sections, const logs::LogFacts& facts,
                     const logs::Diagnosis& diagnosis);

}  // namespace diapason::cli
