#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace diapason::launch {

// The path of this process's program, and the words it was started with; from /proc.
Result<std::string> OwnProgram();
Result<std::vector<std::string>> OwnArguments();

}  // namespace diapason::launch
