#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/status.h"
#include "comm/communicator.h"
#include "comm/gpu/runtime.h"
#include "diapason/comm.h"

namespace diapason::comm {

// Converts a call for a backend without GPU memory, wire types and coalescing: packs tensors
// together, narrows f32, copies device buffers to the host. Finish() converts the result back.
class StagedCall {
 public:
  // `runtime` is null if the process uses no GPU; `device` does the copies.
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
  size_t count_in_ = 0;   // elements that this rank contributes
  size_t count_out_ = 0;  // and gets
  gpu::Runtime* runtime_ = nullptr;
  int device_ = 0;
  Deadline deadline_;
  std::vector<std::byte> in_;
  std::vector<std::byte> out_;
};

}  // namespace diapason::comm
