#pragma once

#include "plugin/abi/profiler_abi.h"
#include "plugin/profiler/event_names.h"
#include "plugin/profiler/observer.h"

// The callbacks shared by several versions of the profiler interface. Every function returns
// success for any argument, and always writes the handle.
namespace diapason::plugin {

// v4 and later.
template <int kApi>
int InitKnown(void** context, int* mask, const char* name, uint64_t comm_id, int nodes, int ranks,
              int rank, abi::Logger logger) noexcept {
  if (context == nullptr) return abi::kSuccess;
  *context = nullptr;
  try {
    *context = ProfilerObserver::Create(
        {kApi, comm_id, name != nullptr ? name : "", nodes, ranks, rank, mask, logger});
  } catch (...) {  // no memory: nothing is observed
  }
  return abi::kSuccess;
}

// v1 to v3: the library passes nothing about the communicator.
template <int kApi>
int InitUnknown(void** context, int* mask) noexcept {
  return InitKnown<kApi>(context, mask, nullptr, 0, 0, 0, -1, nullptr);
}

// v5 and later: the same arguments in another order.
template <int kApi>
int InitById(void** context, uint64_t comm_id, int* mask, const char* name, int nodes, int ranks,
             int rank, abi::Logger logger) noexcept {
  return InitKnown<kApi>(context, mask, name, comm_id, nodes, ranks, rank, logger);
}

template <int kApi, class Event>
void* StartCollOf(void* context, const Event& event) noexcept {
  RunSeen run;
  run.collective = CollectiveFromEvent(event.coll.func);
  run.algorithm = AlgorithmFromEvent(event.coll.algorithm);
  run.protocol = ProtocolFromEvent(event.coll.protocol);
  run.sequence = event.coll.sequence;
  // Older versions report the allowed number of channels, not the used one.
  if constexpr (kApi >= 4) run.channels = event.coll.channels;
  return ProfilerObserver::StartColl(context, event.parent, run,
                                     {event.coll.count, TypeBytesFromEvent(event.coll.datatype)});
}

// Event types that were not asked for arrive as parents of those that were; under PXN some come
// from other processes. Types not named here are ignored: their context and parent are not read.
template <int kApi, class Event>
int StartEvent(void* context, void** handle, Event* event) noexcept {
  if (handle == nullptr) return abi::kSuccess;
  *handle = nullptr;
  if (event == nullptr) return abi::kSuccess;
  if (event->type == abi::kEventColl) {
    *handle = StartCollOf<kApi>(context, *event);
    return abi::kSuccess;
  }
  if constexpr (kApi >= 4) {
    if (event->type == abi::kEventKernelCh) {
      *handle = ProfilerObserver::StartKernelChannel(event->parent, event->kernel_ch.channel,
                                                     event->kernel_ch.stamp);
      return abi::kSuccess;
    }
  }
  if constexpr (kApi >= 5) {
    if (event->type == abi::kEventCollApi) {
      CallSeen call;
      call.collective = CollectiveFromEvent(event->coll_api.func);
      call.captured = event->coll_api.captured;
      *handle = ProfilerObserver::StartCollApi(
          context, event->parent, call,
          {event->coll_api.count, TypeBytesFromEvent(event->coll_api.datatype)});
    } else if (event->type == abi::kEventKernelLaunch) {
      *handle =
          ProfilerObserver::StartKernelLaunch(context, event->parent, event->kernel_launch.stream);
    } else if (event->type == abi::kEventGroupApi) {
      *handle = ProfilerObserver::StartGroupApi();
    } else if (event->type == abi::kEventP2pApi) {
      ProfilerObserver::StartP2p(context);
    }
  } else {
    if (event->type == abi::kEventGroup) {
      *handle = ProfilerObserver::StartGroup(context);
    } else if (event->type == abi::kEventP2p) {
      ProfilerObserver::StartP2p(context);
    }
  }
  return abi::kSuccess;
}

// Only a launch ends with its stop: children of other events come later.
inline int StopEvent(void* handle) noexcept {
  ProfilerObserver::StopKernelLaunch(handle);
  return abi::kSuccess;
}

// v1 to v3 have no time stamps.
inline int RecordNothing(void*, int, abi::StateV1*) noexcept { return abi::kSuccess; }

// v4 and later. GroupApi's states come without arguments.
inline int RecordState(void* handle, int state, abi::StateV4* arguments) noexcept {
  if (state == abi::kStateKernelChStop && arguments != nullptr) {
    ProfilerObserver::StopKernelChannel(handle, arguments->stamp);
  }
  return abi::kSuccess;
}

inline int EndObserving(void* context) noexcept {
  ProfilerObserver::Finalize(context);
  return abi::kSuccess;
}

}  // namespace diapason::plugin
