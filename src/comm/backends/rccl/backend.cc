// RCCL has NCCL's interface, over HIP: only the names differ.
#include "comm/backend.h"

#include "comm/backends/nccl/backend.h"
#include "comm/gpu/runtime.h"

namespace diapason::comm {

Backend* RcclBackend() {
  static auto* const backend = new nccl::GpuBackend(
      {Library::kRccl, Setting::kRcclLibrary, {"librccl.so.1", "librccl.so"}, &gpu::Hip});
  return backend;
}

}  // namespace diapason::comm
