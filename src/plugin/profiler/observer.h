#pragma once

#include <cstdint>
#include <string>

#include "plugin/abi/abi.h"
#include "plugin/profiler/comm_observer.h"

namespace diapason::plugin {

// What the library passes at init to the profiler half.
struct ProfilerInit {
  int api = 0;
  // v4 and later; earlier versions pass none: 0, "", 0, 0 and -1.
  uint64_t comm_id = 0;
  std::string name;
  int64_t nodes = 0;
  int64_t ranks = 0;
  int rank = -1;
  int* mask = nullptr;           // the process's mask of wanted events; see event_mask.h
  abi::Logger logger = nullptr;  // v4 and later
};

// Who observes communicators: plugin/learning in the plugin, which registers itself when the file
// is loaded, and tests.
struct CommObserverSource {
  // The observer of a new communicator; nullptr: its events are ignored.
  CommObserver* (*attach)(const ProfilerInit& init) noexcept;
  // Called after the last event has reached the observer. Not called if a callback was still
  // inside it after a second of waiting: then it must stay alive.
  void (*detach)(CommObserver* comm_observer) noexcept;
};

// The amount of data of an event.
struct Elements {
  uint64_t count = 0;
  int type_bytes = 0;  // 0: an unknown type
};

// The profiler contexts of the process: translates the library's events of every API version into
// calls of a CommObserver.
//
// Contexts and event handles are numbers in pointers, never addresses. The library passes them back
// late (children after their parent's stop, replays of a graph long after its capture, shared proxy
// threads after finalize), and with PXN it passes handles of other processes. Every value is looked
// up and checked; unknown ones are ignored.
//
// Any thread may call any function, with any value. Only Finalize waits.
class ProfilerObserver {
 public:
  // Also starts the second profiler, if there is one (second_profiler.h). nullptr: there is neither
  // an observer nor a second profiler, or no free slot.
  static void* Create(const ProfilerInit& init) noexcept;
  static void Finalize(void* context) noexcept;

  // Events. The functions return the event's handle; nullptr: it has none.
  //
  // Numbers the group. Calls and launches name it as their parent, on any thread. The library
  // reports a group of several communicators only to the first of them, which may not be observed;
  // so the context is not used.
  static void* StartGroupApi() noexcept;
  // Fills in `bytes` of calls and runs, and the groups of calls and launches. `parent` is the
  // result of StartGroupApi.
  static void* StartCollApi(void* context, void* parent, CallSeen call,
                            const Elements& elements) noexcept;
  static void* StartKernelLaunch(void* context, void* parent, void* stream) noexcept;
  // Stops of other events are ignored.
  static void StopKernelLaunch(void* handle) noexcept;
  // A plan (API v1 to v4). It needs a handle: without one, libraries before 2.28 send no Coll.
  static void* StartGroup(void* context) noexcept;
  // `parent` is the result of StartCollApi or StartGroup. Fills in `run.replayed`.
  static void* StartColl(void* context, void* parent, RunSeen run,
                         const Elements& elements) noexcept;
  static void StartP2p(void* context) noexcept;
  // `parent` is the result of StartColl; with any other parent the event belongs to a
  // point-to-point call.
  static void* StartKernelChannel(void* parent, int channel, uint64_t stamp) noexcept;
  static void StopKernelChannel(void* handle, uint64_t stamp) noexcept;

  // For communicators created from now on, and the end of all; nullptr: nothing is observed.
  // `source` must live as long as the process.
  static void UseCommObservers(const CommObserverSource* source) noexcept;
};

// Counts of dropped events since the process began, by reason: for the journal and for tests.
template <typename Number>
struct ObserverCountsOf {
  Number timed = 0;       // runs with a reported duration
  Number late = 0;        // events of an overwritten run, or of a finalised communicator
  Number foreign = 0;     // handles and contexts that this process did not make
  Number bad_stamps = 0;  // runs with impossible times
  Number overrun = 0;     // runs whose times may belong to later runs
  Number untimeable = 0;  // runs whose number of channels the library does not report
  Number stuck = 0;       // comm_observers that were left alive, see CommObserverSource
};
using ObserverCounts = ObserverCountsOf<uint64_t>;
ObserverCounts ReadObserverCounts() noexcept;

}  // namespace diapason::plugin
