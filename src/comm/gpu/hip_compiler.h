#pragma once

#include <string>

#include "base/status.h"

namespace diapason::comm::gpu {

// Compiles HIP source for the device that the calling thread has bound, with ROCm's compiler for
// run time (libhiprtc, opened with dlopen). The code is what hipModuleLoadData takes. `name` stands
// in the compiler's messages.
Result<std::string> CompileHip(const char* source, const char* name);

}  // namespace diapason::comm::gpu
