#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"
#include "comm/gpu/runtime.h"
#include "diapason/comm.h"

namespace diapason::comm {

// A call in the form a backend without GPU, wire types and coalescing can run: tensors packed
// together, f32 narrowed, device buffers copied to the host. Finish() does the way back.
class StagedCall {
 public:
  // `runtime` is null where the process uses no GPU; `device` is the one that copies.
  static Result<std::unique_ptr<StagedCall>> Make(const Call& call, int rank, int ranks,
                                                  gpu::Runtime* runtime, int device,
                                                  Deadline deadline);
  const Call& call() const { return call_; }
  Status Finish();

 private:
  StagedCall() = default;
  Status CopyIn(int rank, int ranks);
  Status Move(void* out, const void* in, size_t bytes);

  Call original_;
  Call call_;
  bool on_device_ = false;
  size_t count_in_ = 0;   // elements this rank gives
  size_t count_out_ = 0;  // and gets
  gpu::Runtime* runtime_ = nullptr;
  int device_ = 0;
  Deadline deadline_;
  std::vector<std::byte> in_;
  std::vector<std::byte> out_;
};

}  // namespace diapason::comm
