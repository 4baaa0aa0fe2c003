#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/status.h"
#include "comm/gpu/runtime.h"
#include "diapason/comm.h"

namespace diapason::measure {

// Memory where a group's library works best: on the GPU for NCCL and RCCL, on the host elsewhere.
class MeasureBuffers {
 public:
  // `runtime` is null for host memory.
  MeasureBuffers(comm::gpu::Runtime* runtime, int device) : runtime_(runtime), device_(device) {}
  // For a group: its GPU, if it has one.
  static Result<std::unique_ptr<MeasureBuffers>> For(const Group& group);
  ~MeasureBuffers();
  MeasureBuffers(const MeasureBuffers&) = delete;
  MeasureBuffers& operator=(const MeasureBuffers&) = delete;

  // Two buffers of at least so many bytes each. What was in them is lost when they grow.
  Status Reserve(size_t bytes);
  char* in() const { return in_; }
  char* out() const { return out_; }
  bool on_device() const { return runtime_ != nullptr; }
  Memory memory() const { return on_device() ? Memory::kDevice : Memory::kHost; }

  // Ended when they return.
  Status Upload(void* to, const void* host, size_t bytes);
  Status Download(void* host, const void* from, size_t bytes);

 private:
  Status CopyAndWait(void* to, const void* from, size_t bytes);
  void Release();

  comm::gpu::Runtime* runtime_;
  int device_;
  void* stream_ = nullptr;
  void* event_ = nullptr;
  size_t bytes_ = 0;
  char* in_ = nullptr;
  char* out_ = nullptr;
};

}  // namespace diapason::measure
