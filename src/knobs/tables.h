#pragma once

#include <string>
#include <utility>
#include <vector>

namespace diapason::knobs {

// The tables src/knobs/*.toml as they were when the program was built: name and text.
const std::vector<std::pair<std::string, std::string>>& BuiltInTables();

}  // namespace diapason::knobs
