#pragma once

#include "plugin/abi/abi.h"
#include "plugin/abi/profiler_events.h"

// The callbacks of the profiler plugin interface of NCCL and RCCL, versions 1 to 7, written from
// its published layout. Each profiler_vN.cc exports one structure as the data symbol
// ncclProfiler_vN.
namespace diapason::plugin::abi {

inline constexpr int kNewestProfilerApi = 7;

// Event states that are used here.
inline constexpr int kStateKernelChStop = 22;     // a channel's kernel has stopped
inline constexpr int kStateKernelPhaseStop = 31;  // v7

// The arguments of a state change. Of its own events the plugin reads only the time stamp, and only
// from v4 on.
union StateV1 {
  struct {
    size_t bytes;
    int steps;
  } proxy_op;
  int appended;
};

union StateV4 {
  size_t bytes;
  int appended;
  void* data;
  uint64_t stamp;
};

template <class Event, class State>
struct ProfilerV1 {
  const char* name;
  int (*init)(void** context, int* mask);
  int (*start_event)(void* context, void** handle, Event* event);
  int (*stop_event)(void* handle);
  int (*record_state)(void* handle, int state, State* arguments);
  int (*finalize)(void* context);
};

struct ProfilerV4 {
  const char* name;
  int (*init)(void** context, int* mask, const char* comm_name, uint64_t comm_id, int nodes,
              int ranks, int rank, Logger logger);
  int (*start_event)(void* context, void** handle, EventV4* event);
  int (*stop_event)(void* handle);
  int (*record_state)(void* handle, int state, StateV4* arguments);
  int (*finalize)(void* context);
};

template <class Event>
struct ProfilerV5 {
  const char* name;
  int (*init)(void** context, uint64_t comm_id, int* mask, const char* comm_name, int nodes,
              int ranks, int rank, Logger logger);
  int (*start_event)(void* context, void** handle, Event* event);
  int (*stop_event)(void* handle);
  int (*record_state)(void* handle, int state, StateV4* arguments);
  int (*finalize)(void* context);
};

static_assert(sizeof(StateV1) == 16 && sizeof(StateV4) == 8);
static_assert(sizeof(ProfilerV1<EventV1, StateV1>) == 48 && sizeof(ProfilerV4) == 48 &&
              sizeof(ProfilerV5<EventV7>) == 48);

}  // namespace diapason::plugin::abi
