#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "domain/vocabulary.h"

namespace diapason::plugin {

// Free memory of the calling thread's current GPU in bytes, from the driver (CUDA for NCCL, HIP for
// RCCL) if it is already loaded in the process; otherwise nullopt. Loads no library.
std::optional<uint64_t> FreeGpuMemory(Library library);

// Times kernels with the events of the GPU driver (CUDA or HIP) that is already loaded in the
// process; loads no library itself. One object per communicator, because events belong to one GPU.
//
// The library's own measurement (KernelCh) does not replace it: a kernel's time stamp is taken when
// the first thread of a block is done. In a tree that is the end of the upward phase, while other
// threads still wait for the downward phase; trees would look up to twice as fast as they are.
class GpuEvents {
 public:
  // nullptr: no driver is loaded, or it is too old.
  static std::unique_ptr<GpuEvents> Make(Library library);
  ~GpuEvents();
  GpuEvents(const GpuEvents&) = delete;
  GpuEvents& operator=(const GpuEvents&) = delete;

  // Called before and after a kernel is enqueued on a stream, by the thread that enqueues it. The
  // stream must not be captured. -1: all events are in use, or the driver failed.
  int Begin(void* stream) noexcept;
  bool End(int pair, void* stream) noexcept;

  enum class State { kRunning, kDone, kFailed };
  // Called by one other thread at a time. A pair that is no longer running is freed.
  State Look(int pair, double* seconds) noexcept;
  void Discard(int pair) noexcept;
  // Whether the kernel of the pair that was begun last has ended. Called by the thread that
  // enqueues the next one, before Begin; REQUIRES: End was true for it.
  bool Ended(int pair) const noexcept;

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
  std::atomic<void*> device_{nullptr};  // the launching thread's current device or context
  std::atomic<bool> refused_{false};
  int next_ = 0;
  Pair pairs_[kPairs];
};

}  // namespace diapason::plugin
