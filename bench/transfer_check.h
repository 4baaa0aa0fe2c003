#pragma once

#include <string>
#include <vector>

#include "grid_tables.h"

namespace diapason::model {

// Choices at numbers of nodes that were left out, from the others (model/transfer.h): of the
// model and of a plan, with how often the 90 % intervals of gains and times hold. Prints a table:
// the tables' parts that have several numbers of nodes, and made-up grids of 1, 2, 4, 8 and 16
// nodes.
void PrintTransfer(const std::vector<NamedGrid>& grids);

}  // namespace diapason::model
