#pragma once

#include <string>
#include <string_view>

#include "logs/facts.h"

namespace diapason::cli {

// A table shows no more rows than this; MoreRows says how many it left out.
inline constexpr size_t kMostRows = 32;
std::string MoreRows(size_t all, std::string_view noun);
std::string IndentedRows(const std::string& text);

// Sections of `diapason logs` that say what was done: chosen, called, measured, recorded.
std::string LogChoices(const logs::LogFacts& facts);
std::string LogOperations(const logs::LogFacts& facts);
std::string LogResults(const logs::LogFacts& facts);
std::string LogFlights(const logs::LogFacts& facts);

}  // namespace diapason::cli
