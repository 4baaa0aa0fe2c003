#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace diapason::dataset {

// One line of a CSV text into its cells; quoted cells may hold commas, doubled quotes and line
// feeds. Takes the line off the front of *text and adds its line feeds to *line. An error names the
// line. Cells are not trimmed.
Result<std::vector<std::string>> TakeCsvRow(std::string_view* text, int* line);

// A cell, quoted where it has to be.
std::string CsvCell(std::string_view text);

}  // namespace diapason::dataset
