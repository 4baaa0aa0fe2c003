#pragma once

#include <vector>

#include "base/status.h"
#include "comm/backends/nccl/workspace.h"
#include "diapason/comm.h"

namespace diapason::comm::nccl {

// Brings a call's buffers to where the library can use them and the results back: host memory
// through pinned memory to the GPU, f32 into the narrower type it travels in. Everything is put
// into the stream, nothing waits.
class Staging {
 public:
  // What the library is to work on, per tensor.
  struct Part {
    const void* in = nullptr;
    void* out = nullptr;
    size_t count = 0;
  };

  Staging(Workspace* workspace, CallInFlight* flight, const Call& call, int rank, int size,
          void* stream)
      : workspace_(workspace),
        flight_(flight),
        call_(call),
        rank_(rank),
        size_(size),
        stream_(stream) {}

  // Both only enqueue; After goes behind the library's own work.
  Status Before();
  Status After();

  const std::vector<Part>& parts() const { return parts_; }
  // The type that travels.
  DataType type() const { return call_.wire.value_or(call_.type); }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  // One tensor on its way. Offsets are into the staged memory: the same on the GPU and pinned.
  struct Item {
    const void* in = nullptr;  // the program's
    void* out = nullptr;
    size_t count = 0;
    size_t in_bytes = 0;
    size_t out_bytes = 0;
    size_t in_staged = kNone;
    size_t out_staged = kNone;
    size_t wire = kNone;  // on the GPU only
  };

  Item Describe(const void* in, void* out, size_t count) const;
  bool IsHost(const void* pointer) const;
  // Lays the items out; the results are how much is needed of each memory.
  void LayOut(size_t* staged_bytes, size_t* device_bytes);
  Status CopyIn();
  Status Narrow();
  char* OnDevice(size_t offset) const { return static_cast<char*>(device_) + offset; }
  char* Pinned(size_t offset) const { return static_cast<char*>(pinned_) + offset; }

  Workspace* workspace_;
  CallInFlight* flight_;
  const Call& call_;
  int rank_;
  int size_;
  void* stream_;
  void* device_ = nullptr;
  void* pinned_ = nullptr;
  std::vector<Item> items_;
  std::vector<Part> parts_;
};

}  // namespace diapason::comm::nccl
