#pragma once

#include <cstdint>
#include <optional>

#include "domain/vocabulary.h"

namespace diapason::plugin {

// A handle of the GPU driver (CUDA for NCCL, HIP for RCCL) if it is already loaded in the process;
// otherwise nullptr. The caller may dlclose it or keep it.
void* LoadedDriver(Library library);

// Free memory of the calling thread's current GPU in bytes, from the driver if it is already
// loaded; otherwise nullopt. Loads no library.
std::optional<uint64_t> FreeGpuMemory(Library library);

}  // namespace diapason::plugin
