#pragma once

#include <string>
#include <string_view>

#include "logs/facts.h"

namespace diapason::cli {

// Maximum number of rows of a table; MoreRows prints how many were left out.
inline constexpr size_t kMostRows = 32;
std::string MoreRows(size_t all, std::string_view noun);
std::string IndentedRows(const std::string& text);

// Sections of `diapason logs` about the run itself: choices, calls, measurements, flight recorder.
std::string LogChoices(const logs::LogFacts& facts);
std::string LogOperations(const logs::LogFacts& facts);
std::string LogResults(const logs::LogFacts& facts);
std::string LogFlights(const logs::LogFacts& facts);

}  // namespace diapason::cli
