#pragma once

#include <string>
#include <utility>
#include <vector>

namespace diapason::knobs {

// The tables src/knobs/*.toml as of the build: name and text.
const std::vector<std::pair<std::string, std::string>>& BuiltInTables();

}  // namespace diapason::knobs
