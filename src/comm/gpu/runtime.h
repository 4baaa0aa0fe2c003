#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "diapason/comm.h"

namespace diapason::comm::gpu {

// The part of a GPU driver that is used, opened with dlopen: CUDA's driver interface (present with
// every driver, whichever CUDA runtime the program links) or HIP's runtime. Streams and events are
// the runtime's own handles, so those of a program (cudaStream_t, hipStream_t) can be passed in.
// All functions act on the device that the calling thread has bound.
class Runtime {
 public:
  virtual ~Runtime() = default;

  virtual int DeviceCount() const = 0;
  virtual std::string DeviceName(int device) const = 0;
  // Unique on this host: NVIDIA's UUID ("GPU-..."), else the bus address.
  virtual std::string DeviceId(int device) const = 0;
  // Makes the device's primary context current on this thread.
  virtual Status Bind(int device) = 0;
  // The thread's current context, and how to restore it: see Bound below.
  virtual void* Current() const = 0;
  virtual void Restore(void* current) = 0;

  // True for memory that only the GPU can reliably access (device and managed memory).
  virtual bool IsDevicePointer(const void* pointer) const = 0;
  virtual Result<void*> Allocate(size_t bytes) = 0;
  virtual void Free(void* pointer) = 0;
  // Pinned host memory, which asynchronous copies need.
  virtual Result<void*> AllocatePinned(size_t bytes) = 0;
  virtual void FreePinned(void* pointer) = 0;

  virtual Result<void*> CreateStream() = 0;
  virtual void DestroyStream(void* stream) = 0;
  // Later work in the stream begins after the work that is now in the default stream, which most
  // programs use; even a copy call that has returned may not have completed there.
  virtual Status FollowDefault(void* stream, void* event) = 0;
  // Later work in the stream begins after the last recording of the event.
  virtual Status WaitForEvent(void* stream, void* event) = 0;
  // Whether the stream is being captured into a graph.
  virtual bool IsCapturing(void* stream) const = 0;
  // Any direction, ordered in the stream. Returns at once if the host memory is pinned; otherwise
  // the driver may wait for all work in the stream.
  virtual Status Copy(void* out, const void* in, size_t bytes, void* stream) = 0;
  // Calls the function on a driver thread, ordered in the stream. It must not call the GPU.
  virtual Status CallHost(void (*function)(void*), void* argument, void* stream) = 0;

  virtual Result<void*> CreateEvent() = 0;
  virtual void DestroyEvent(void* event) = 0;
  virtual Status RecordEvent(void* event, void* stream) = 0;
  // True: done. False: not yet. An error: the device has failed.
  virtual Result<bool> EventDone(void* event) = 0;
  // Seconds between two events that are done.
  virtual Result<double> Elapsed(void* from, void* to) = 0;

  // Whether Convert works here.
  virtual bool Converts() const = 0;
  // f32 -> bf16 or f16 and back, on the device; an error if the runtime cannot.
  virtual Status Convert(void* out, DataType out_type, const void* in, DataType in_type,
                         size_t count, void* stream) = 0;

  // Keeps the bound device's multiprocessors busy with `rounds` rounds of arithmetic, ordered in
  // the stream; the caller measures how long a round takes. The first call compiles the kernel,
  // which can take a second.
  virtual Status Compute(uint32_t rounds, void* stream) = 0;
};

// Binds a device for a scope and then restores the thread's previous one, because the thread
// belongs to the program.
class Bound {
 public:
  Bound(Runtime* runtime, int device) : runtime_(runtime), before_(runtime->Current()) {
    status_ = runtime->Bind(device);
  }
  ~Bound() { runtime_->Restore(before_); }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;
  const Status& status() const { return status_; }

 private:
  Runtime* runtime_;
  void* before_;
  Status status_;
};

// Opened once and kept. The error says what is missing: no driver, no device.
Result<Runtime*> Cuda();
Result<Runtime*> Hip();

// The runtime that the process already uses, else null: without its driver in the process there can
// be no device pointers, and starting it would be expensive.
Runtime* InProcess();

// "1 x NVIDIA H200", "4 x A and 4 x B".
std::string DevicesText(const Runtime& runtime);

}  // namespace diapason::comm::gpu
