#pragma once

#include <vector>

#include "base/status.h"
#include "comm/backends/nccl/workspace.h"
#include "diapason/comm.h"

namespace diapason::comm::nccl {

// Moves a call's buffers to memory that the library can use, and the results back: host memory
// through pinned memory to the GPU, f32 into its narrower wire type. Everything is enqueued in the
// stream; nothing waits.
class Staging {
 public:
  // The buffers for the library, per tensor.
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

  // Both only enqueue; After comes behind the library's work.
  Status Before();
  Status After();

  const std::vector<Part>& parts() const { return parts_; }
  // The wire type.
  DataType type() const { return call_.wire.value_or(call_.type); }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  // One tensor. Offsets are into the staged memory: the same on the GPU and pinned.
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
  // Assigns the offsets; returns the bytes needed of each kind of memory.
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
