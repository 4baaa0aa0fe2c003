#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "domain/vocabulary.h"

namespace diapason::plugin {

// Times kernels with the events of the GPU's own driver (CUDA's, or HIP), which is already in a
// process that has a communicator; nothing is opened that is not there. One object per
// communicator: events belong to one GPU.
//
// The library's own measurement (KernelCh) is no substitute: a kernel's stamp is taken when the
// first thread of a block is done, which in a tree is when its part of the way up is, while other
// threads still wait for the data on its way down. Trees would look up to twice as fast as they
// are.
class GpuEvents {
 public:
  // nullptr: there is no driver in the process, or one that is too old.
  static std::unique_ptr<GpuEvents> Make(Library library);
  ~GpuEvents();
  GpuEvents(const GpuEvents&) = delete;
  GpuEvents& operator=(const GpuEvents&) = delete;

  // Before and after a kernel is given to a stream, on the thread that does it. The stream must not
  // be part of a capture. -1: all events are in use, or the driver refuses.
  int Begin(void* stream) noexcept;
  bool End(int pair, void* stream) noexcept;

  enum class State { kRunning, kDone, kFailed };
  // Any other thread, one at a time. A pair that is not running any more is free again.
  State Look(int pair, double* seconds) noexcept;
  void Discard(int pair) noexcept;

 private:
  struct Driver;
  static constexpr int kPairs = 256;
  struct Pair {
    void* begin = nullptr;
    void* end = nullptr;
    std::atomic<bool> used{false};
  };

  explicit GpuEvents(const Driver* driver) : driver_(driver) {}
  static const Driver* Find(Library library);

  const Driver* driver_;
  std::atomic<void*> device_{nullptr};  // what the launching thread has made current
  std::atomic<bool> refused_{false};
  int next_ = 0;
  Pair pairs_[kPairs];
};

}  // namespace diapason::plugin
