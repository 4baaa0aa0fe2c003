#pragma once

#include <cstdint>

namespace diapason::plugin {

// What the profiler half of the plugin observes of one communicator, passed to the object that
// decides for it. The library calls from any thread, and so do these functions; none of them may
// block.

// A collective was called (a CollApi event).
struct CallSeen {
  int collective = -1;    // in the tuner's numbering; -1: the tuner is never asked about it
  uint64_t bytes = 0;     // as the tuner counts them; 0: unknown
  bool captured = false;  // into a graph
  uint64_t group = 0;     // number of the API group; 0: the library did not say
};

// A collective was enqueued on the GPU (a Coll event): the configuration that actually runs.
struct RunSeen {
  int collective = -1;
  uint64_t bytes = 0;
  int algorithm = -1;  // -1: an unknown name
  int protocol = -1;
  int channels = 0;  // 0: the library does not say
  uint64_t sequence = 0;
  bool replayed = false;  // the event belongs to a call that was captured
  bool bypassed = false;  // a symmetric kernel: no tuner chooses it
};

// When its kernel ran, on the GPU's clock, over all its channels.
struct GpuSpan {
  uint64_t start_ns = 0;
  uint64_t stop_ns = 0;
};

class CommObserver {
 public:
  virtual void Called(const CallSeen& call) noexcept = 0;
  // Called before and after a kernel of this communicator is enqueued on this stream, on one
  // thread. `group` is the group of its calls, collective or point-to-point; 0: the library did not
  // say.
  virtual void Launched(uint64_t group, void* stream) noexcept = 0;
  virtual void LaunchEnded() noexcept = 0;
  // The returned tag is passed back with the duration of this run; 0: the duration is not wanted.
  virtual uint64_t RecordActual(const RunSeen& run) noexcept = 0;
  virtual void Timed(uint64_t tag, const GpuSpan& span) noexcept = 0;

 protected:
  ~CommObserver() = default;
};

}  // namespace diapason::plugin
