#pragma once

#include <string>

#include "base/status.h"

namespace diapason::comm::gpu {

// Compiles HIP source for the device that the calling thread has bound, with ROCm's run-time
// compiler (libhiprtc, opened with dlopen). The result is input for hipModuleLoadData. The
// compiler's messages contain `name`.
Result<std::string> CompileHip(const char* source, const char* name);

}  // namespace diapason::comm::gpu
