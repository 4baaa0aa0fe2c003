#pragma once

#include <string>
#include <utility>
#include <vector>

namespace diapason::messages {

// The tables src/messages/*.toml as of the build: name and text.
const std::vector<std::pair<std::string, std::string>>& BuiltInTables();

}  // namespace diapason::messages
