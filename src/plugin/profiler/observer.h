#pragma once

#include <cstdint>
#include <string>

#include "plugin/abi/abi.h"
#include "plugin/profiler/comm_observer.h"

namespace diapason::plugin {

// What the library says about a communicator when it hands it to the profiler half.
struct ProfilerInit {
  int api = 0;
  // v4 and later; before that the library does not say: 0, "", 0, 0 and -1.
  uint64_t comm_id = 0;
  std::string name;
  int64_t nodes = 0;
  int64_t ranks = 0;
  int rank = -1;
  int* mask = nullptr;           // the process's one word of wanted events; see event_mask.h
  abi::Logger logger = nullptr;  // v4 and later
};

// Who observes communicators: plugin/learning in the plugin, which registers itself when the file
// is loaded, and tests.
struct CommObserverSource {
  // The observer of a new communicator; nullptr: its events are ignored.
  CommObserver* (*attach)(const ProfilerInit& init) noexcept;
  // No event reaches the observer any more. Not called when a callback was still inside it after a
  // second of waiting: then it must live on.
  void (*detach)(CommObserver* comm_observer) noexcept;
};

// How much data an event is about, in its own words.
struct Elements {
  uint64_t count = 0;
  int type_bytes = 0;  // 0: a type that is not known
};

// The profiler contexts of the process: translates the library's events into what a comm_observer
// is told, whatever the API version.
//
// Contexts and event handles are numbers that look like pointers, never addresses. The library
// hands them back late (children after their parent's stop, replays of a graph long after its
// capture, shared proxy threads after finalize), and with PXN it hands over those of other
// processes. Everything is looked up and checked; what does not belong here is ignored.
//
// Every function may be called by any thread, with any value. None waits but Finalize.
class ProfilerObserver {
 public:
  // nullptr: nobody is interested, or there is no room.
  static void* Create(const ProfilerInit& init) noexcept;
  static void Finalize(void* context) noexcept;

  // Events. What is returned is the event's handle; nullptr: it has none.
  //
  // Numbers the group. Calls and launches name it as their parent, on whatever thread they come.
  // The library tells a group that spans several communicators to the first of them only, which may
  // be one that is not observed: so the context does not matter.
  static void* StartGroupApi() noexcept;
  // `bytes` of calls and runs, and the groups of calls and launches, are found here. `parent` is
  // what StartGroupApi gave.
  static void* StartCollApi(void* context, void* parent, CallSeen call,
                            const Elements& elements) noexcept;
  static void* StartKernelLaunch(void* context, void* parent, void* stream) noexcept;
  // Any other event that stops is ignored.
  static void StopKernelLaunch(void* handle) noexcept;
  // A plan (API v1 to v4). Needs a handle: without one, libraries before 2.28 tell no Coll.
  static void* StartGroup(void* context) noexcept;
  // `parent` is what StartCollApi or StartGroup gave. `run.replayed` is found here.
  static void* StartColl(void* context, void* parent, RunSeen run,
                         const Elements& elements) noexcept;
  static void StartP2p(void* context) noexcept;
  // `parent` is what StartColl gave; anything else belongs to a point-to-point call.
  static void* StartKernelChannel(void* parent, int channel, uint64_t stamp) noexcept;
  static void StopKernelChannel(void* handle, uint64_t stamp) noexcept;

  // For communicators created from now on, and the end of all; nullptr: nothing is observed.
  // `source` must live as long as the process.
  static void UseCommObservers(const CommObserverSource* source) noexcept;
};

// What was dropped since the process began, and why: for the journal and for tests.
struct ObserverCounts {
  uint64_t timed = 0;       // runs whose time was told
  uint64_t late = 0;        // events of a run that was forgotten, or of a finalised communicator
  uint64_t foreign = 0;     // handles and contexts that are not ours
  uint64_t bad_stamps = 0;  // runs with times that cannot be
  uint64_t overrun = 0;     // runs whose times may be those of later ones
  uint64_t untimeable = 0;  // runs whose number of channels the library does not tell
  uint64_t stuck = 0;       // comm_observers that were left alive, see CommObserverSource
};
ObserverCounts ReadObserverCounts() noexcept;

}  // namespace diapason::plugin
