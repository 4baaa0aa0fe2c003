#pragma once

#include <cstdint>
#include <optional>

#include "domain/vocabulary.h"

namespace diapason::plugin {

// The GPU's driver (CUDA's for NCCL, HIP for RCCL) as it is already in the process; nullptr: it is
// not. Close it with dlclose, or keep it.
void* LoadedDriver(Library library);

// Free memory of the calling thread's current GPU, through the driver that is already in the
// process; nullopt: there is none to ask. Opens nothing.
std::optional<uint64_t> FreeGpuMemory(Library library);

}  // namespace diapason::plugin
