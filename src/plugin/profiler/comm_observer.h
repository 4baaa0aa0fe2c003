#pragma once

#include <cstdint>

namespace diapason::plugin {

// What the profiler half of the plugin sees of one communicator, told to whoever decides for it.
// The library calls from whatever thread it likes; so do these. None of them may wait.

// A collective was called (a CollApi event).
struct CallSeen {
  int collective = -1;    // as the tuner counts them; -1: one it is never asked about
  uint64_t bytes = 0;     // as the tuner counts them; 0: unknown
  bool captured = false;  // into a graph
  uint64_t group = 0;     // of API calls; 0: the library did not say
};

// A collective was handed to the GPU (a Coll event): what really runs.
struct RunSeen {
  int collective = -1;
  uint64_t bytes = 0;
  int algorithm = -1;  // -1: a name we do not know
  int protocol = -1;
  int channels = 0;  // 0: the library does not say
  uint64_t sequence = 0;
  bool replayed = false;  // the event belongs to a call that was captured
};

// When its kernel ran, on the GPU's clock, over all its channels.
struct GpuSpan {
  uint64_t start_ns = 0;
  uint64_t stop_ns = 0;
};

class CommObserver {
 public:
  virtual void Called(const CallSeen& call) noexcept = 0;
  // A kernel of this communicator is about to be given to this stream, and was; on one thread.
  // `group` is that of the calls it runs, collective or point-to-point; 0: the library did not say.
  virtual void Launched(uint64_t group, void* stream) noexcept = 0;
  virtual void LaunchEnded() noexcept = 0;
  // The answer is handed back with the time of this run; 0: nobody wants to know it.
  virtual uint64_t RecordActual(const RunSeen& run) noexcept = 0;
  virtual void Timed(uint64_t tag, const GpuSpan& span) noexcept = 0;

 protected:
  ~CommObserver() = default;
};

}  // namespace diapason::plugin
