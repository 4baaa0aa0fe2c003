#pragma once

#include <atomic>
#include <cstdint>

namespace diapason::plugin {

// The events that a second profiler has given a handle for. The library gets a number (see
// event_handle.h) that leads to both handles: our own and the second profiler's.
//
// Memory is bounded and nothing is allocated for an event. A link stays readable after its event
// has stopped, because the library names parents late (children after their parent's stop, replays
// long after a capture); it is reused when it is the oldest of its kind that has stopped, or when
// its communicator has ended. A link of an event that has not stopped is never reused while its
// communicator lives.
//
// Any thread may call any function, with any value; there are no locks.
class EventLinks {
 public:
  enum class Kind : uint8_t {
    kCall,      // groups, calls and what is enqueued for them: their children may come much later
    kCaptured,  // calls into a graph, the parents of all its replays: kept with their communicator
    kPart,      // pieces of work on the network and on the GPU: their children come soon
  };

  struct Link {
    void* own = nullptr;     // the plugin's own handle; NULL: it has none
    void* second = nullptr;  // the second profiler's
    uint64_t context = 0;    // the communicator, as in ObserverTable; 0: one of another process
    int mask = 0;            // the events that the second profiler wanted when the event began
  };

  // A place for an event that is about to begin; 0: all are in use. Publish or Abandon must follow.
  static uint64_t Claim(Kind kind) noexcept;
  static void* Publish(uint64_t place, const Link& link) noexcept;
  static void Abandon(uint64_t place) noexcept;

  // False: not a link, or one that was reused.
  static bool Read(void* handle, Link* link) noexcept;
  static bool IsLink(void* handle) noexcept;
  // The event has stopped.
  static void Stop(void* handle) noexcept;
};

}  // namespace diapason::plugin
