#pragma once

#include <cstddef>
#include <string>

#include "base/status.h"
#include "plugin/abi/abi.h"

namespace diapason::plugin {

// With NCCL_ENV_PLUGIN alone, the library finds the tuner and the profiler too: both are this file,
// and this is what answers so.

// The longest path the library keeps whole.
inline constexpr size_t kLongestPluginPath = 254;

// Where the file with this address in it lies, as an absolute path; an error says why it cannot be
// told to the library.
Result<std::string> FileOfAddress(const void* address);

// The environment's own value if there is one, even an empty one or "none". Otherwise, for
// NCCL_TUNER_PLUGIN and NCCL_PROFILER_PLUGIN, this file, unless DIAPASON_MODE=off. The text lives
// as long as the process, or as long as the program leaves the variable alone.
const char* AnswerEnvironment(const char* name) noexcept;

// Finds the file, because a relative path is only good until the program changes its folder, and
// says at INFO what will be answered. `logger` may be null.
void PrepareAnswers(abi::Logger logger) noexcept;

}  // namespace diapason::plugin
