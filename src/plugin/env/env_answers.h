#pragma once

#include <cstddef>
#include <string>

#include "base/status.h"
#include "plugin/abi/abi.h"

namespace diapason::plugin {

// The env plugin: with NCCL_ENV_PLUGIN alone set, the library also loads the tuner and the profiler
// from this file, because these functions answer its questions for their names.

// The longest path that the library does not truncate.
inline constexpr size_t kLongestPluginPath = 254;

// The absolute path of the file that contains `address`; the error says why the library cannot be
// given it.
Result<std::string> FileOfAddress(const void* address);

// For NCCL_TUNER_PLUGIN and NCCL_PROFILER_PLUGIN the path of this file, unless DIAPASON_MODE=off;
// otherwise the environment's own value. The environment's value wins if it is "none" or names
// diapason, and for the profiler if it is empty. Another tuner or profiler is chained instead
// (plugin/tuner/find_tuner.h, plugin/profiler/second_profiler.h): by the time the library asks, a
// network plugin may have set the tuner's variable (aws-ofi-nccl does), and this file would never
// be loaded. The result is valid until the process ends or the program changes the variable.
const char* AnswerEnvironment(const char* name) noexcept;

// Resolves the path at init, because a relative path is valid only until the program changes its
// working directory, and logs the answers at INFO. `logger` may be null.
void PrepareAnswers(abi::Logger logger) noexcept;

}  // namespace diapason::plugin
