#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "comm/gpu/block_pool.h"
#include "comm/gpu/runtime.h"

namespace diapason::comm::nccl {

// A driver thread copies between the program's host memory and the staging memory when the stream
// reaches that point. After an error the program may free its buffers: the gate is then shut, and
// later copies do not touch them.
class HostGate {
 public:
  struct Copy {
    void* out;
    const void* in;
    size_t bytes;
  };
  // Enqueues the copies in the stream.
  static Status Enqueue(const std::shared_ptr<HostGate>& gate, gpu::Runtime* runtime, void* stream,
                        std::vector<Copy> copies);
  // Waits for running copies.
  void Shut();

 private:
  struct Job;
  static void Run(void* job);

  std::mutex mutex_;
  bool shut_ = false;
};

// The resources of a call in flight.
struct CallInFlight {
  void* begin = nullptr;  // events
  void* end = nullptr;
  std::vector<gpu::BlockPool::Block*> blocks;
  bool held = true;       // the caller may still wait for it
  bool deferred = false;  // not in the stream yet: see messages.h
  bool started = false;   // both events are in the stream
  // Part of a GPU graph, which may be replayed at any time: its memory is never returned.
  bool captured = false;
};

// The stream, memory and events of one communicator. Not thread-safe.
class Workspace {
 public:
  static Result<std::shared_ptr<Workspace>> Make(gpu::Runtime* runtime, int device);
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  gpu::Runtime* runtime() const { return runtime_; }
  int device() const { return device_; }
  void* stream() const { return stream_; }
  void* barrier_word() const { return barrier_word_; }
  const std::shared_ptr<HostGate>& gate() const { return gate_; }

  // REQUIRES for all below: the device is bound.
  Result<CallInFlight*> Begin();
  // Memory for the duration of the call.
  Result<void*> Device(CallInFlight* flight, size_t bytes) {
    return Borrow(&device_blocks_, flight, bytes);
  }
  Result<void*> Pinned(CallInFlight* flight, size_t bytes) {
    return Borrow(&pinned_blocks_, flight, bytes);
  }
  // The caller no longer waits for this one; its memory is reused once it has ended.
  void LetGo(CallInFlight* flight) { flight->held = false; }
  // True if no call is in flight.
  bool Idle();
  // Frees everything. Only valid once nothing of the communicator is left on the GPU; otherwise the
  // memory must stay allocated until the process ends.
  void FreeAll();

 private:
  Workspace(gpu::Runtime* runtime, int device)
      : runtime_(runtime),
        device_(device),
        device_blocks_(runtime, gpu::BlockPool::Kind::kDevice),
        pinned_blocks_(runtime, gpu::BlockPool::Kind::kPinned) {}
  Result<void*> Borrow(gpu::BlockPool* pool, CallInFlight* flight, size_t bytes);
  bool HasEnded(const CallInFlight& flight) const;

  gpu::Runtime* runtime_;
  int device_;
  void* stream_ = nullptr;
  void* barrier_word_ = nullptr;
  gpu::BlockPool device_blocks_;
  gpu::BlockPool pinned_blocks_;
  std::vector<std::unique_ptr<CallInFlight>> flights_;
  std::shared_ptr<HostGate> gate_ = std::make_shared<HostGate>();
};

}  // namespace diapason::comm::nccl
