#pragma once

#include <atomic>
#include <cstdint>

#include "plugin/profiler/observer.h"

namespace diapason::plugin {

// Another profiler library beside the plugin's own half: the library loads only one, so the plugin
// passes on what that one would have got alone.
//
// Which: DIAPASON_PROFILER_CHAIN; without it, what NCCL_PROFILER_PLUGIN names, where that is not
// this plugin (then the env plugin has answered this plugin's file in its place). It is opened once
// per process, with the newest version of the interface that it has and the library speaks, and is
// never closed. Without it, or where it cannot be used, one warning says so and nothing else
// changes.
//
// It gets the events that its own mask names and the ancestors that the library would have started
// for them, as its version has them, with its own contexts and handles. A handle or context that is
// not known any more becomes NULL. An event of another process (PXN) passes as it is.
//
// Any thread may call any function with any value; none of them waits, except the first Start.
class SecondProfiler {
 public:
  // Whether there is one in use. Read for every event.
  static bool Active() noexcept { return active_.load(std::memory_order_relaxed); }

  // A communicator begins and ends. Finish is called after the last event, before the plugin's own
  // observer is detached.
  struct Started {
    bool started = false;
    void* context = nullptr;  // may be NULL
  };
  static Started Start(const ProfilerInit& init) noexcept;
  static void Finish(void* second_context) noexcept;

  // The plugin's own handle behind any handle that the library passes.
  static void* OwnHandle(void* handle) noexcept;
  // Passes on the start of an event and returns the handle for the library. `own` is the plugin's
  // own handle.
  static void* StartEvent(int api, void* context, const void* event, void* own) noexcept;
  static void StopEvent(void* handle) noexcept;
  static void RecordState(int api, void* handle, int state, const void* arguments) noexcept;

 private:
  static inline std::atomic<bool> active_{false};
};

}  // namespace diapason::plugin
