#pragma once

#include <sys/types.h>

#include "plugin/profiler/observer.h"

namespace diapason::plugin {

// The file of a second profiler (second_profiler.h): finds, opens and calls it.
struct SecondLibrary {
  int api = 0;  // the version of the interface that is used
  const void* symbol = nullptr;
  const char* name = "";   // its own
  const char* place = "";  // where it was found, for the log: ", inside the network plugin"
  // The same in all versions, but for the layout of what is passed.
  int (*start_event)(void* context, void** handle, void* event) = nullptr;
  int (*stop_event)(void* handle) = nullptr;
  int (*record_state)(void* handle, int state, void* arguments) = nullptr;
  int (*finalize)(void* context) = nullptr;

  // Calls its init for a communicator. False: it failed, which is logged once.
  bool Init(const ProfilerInit& init, int* mask, void** context) const noexcept;
  // Logs once which events it asks for, and what that costs.
  void SayOnce(const ProfilerInit& init, int mask) const noexcept;
};

// The one that the settings name; or, where the env plugin has put this plugin in the place of the
// site's profiler, the one that the library would have loaded: by NCCL_PROFILER_PLUGIN, else by the
// library's default name, else inside the network plugin that it has loaded. It is opened by the
// first communicator of the process; nullptr: none, or it cannot be used, which is logged once. A
// thread that comes while another opens it waits, for at most a few seconds.
const SecondLibrary* OpenSecondLibrary(const ProfilerInit& init) noexcept;
// The same without opening it.
const SecondLibrary* UsedSecondLibrary() noexcept;

// The process that opened it, as the library tells it in its events.
pid_t OwnProcess() noexcept;

}  // namespace diapason::plugin
