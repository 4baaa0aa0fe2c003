#pragma once

#include <string>
#include <utility>
#include <vector>

namespace diapason::advise {

// The tables src/advise/knobs/*.toml as they were when the program was built: name and text.
const std::vector<std::pair<std::string, std::string>>& BuiltInTables();

}  // namespace diapason::advise
