#pragma once

#include <string>

#include "base/status.h"

namespace diapason::cli {

// The text of a file, of standard input ("-"), or of a pipe (/dev/fd/63, a FIFO). Fails for
// folders, for what is larger than a few megabytes, for binary files, and for a pipe that stays
// silent for half a minute.
Result<std::string> ReadTextToCheck(const std::string& file);

}  // namespace diapason::cli
