#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace diapason::dataset {

// Splits one line of CSV into cells; quoted cells may contain commas, doubled quotes and line
// feeds. Removes the line from the front of *text and adds its line feeds to *line. An error names
// the line. Cells are not trimmed.
Result<std::vector<std::string>> TakeCsvRow(std::string_view* text, int* line);

// A cell, quoted if necessary.
std::string CsvCell(std::string_view text);

}  // namespace diapason::dataset
