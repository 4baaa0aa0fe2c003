#pragma once

#include "plugin/abi/profiler_abi.h"
#include "plugin/profiler/event_names.h"
#include "plugin/profiler/observer.h"
#include "plugin/profiler/second_profiler.h"

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

// A symmetric kernel, whose algorithm and protocol no tuner chooses. Up to v6 the name of the
// kernel stands in place of the algorithm, and the protocol is empty. v1 has only numbers.
inline bool IsSymmetric(const abi::CollV7& coll) noexcept { return coll.symmetric; }
inline bool IsSymmetric(const abi::CollV1& /*coll*/) noexcept { return false; }
template <class Coll>
bool IsSymmetric(const Coll& coll) noexcept {
  return coll.protocol != nullptr && *coll.protocol == '\0';
}

template <int kApi, class Event>
void* StartCollOf(void* context, void* parent, const Event& event) noexcept {
  RunSeen run;
  run.collective = CollectiveFromEvent(event.coll.func);
  run.algorithm = AlgorithmFromEvent(event.coll.algorithm);
  run.protocol = ProtocolFromEvent(event.coll.protocol);
  run.sequence = event.coll.sequence;
  run.bypassed = IsSymmetric(event.coll);
  // Older versions report the allowed number of channels, not the used one.
  if constexpr (kApi >= 4) run.channels = event.coll.channels;
  return ProfilerObserver::StartColl(context, parent, run,
                                     {event.coll.count, TypeBytesFromEvent(event.coll.datatype)});
}

// The plugin's own half of an event; the result is its own handle. `parent` is one of those.
//
// Event types that were not asked for arrive as parents of those that were, for a second profiler,
// and when somebody else has changed the mask (2.31 and later); under PXN some come from other
// processes. Types not named here are ignored: their context and parent are not read.
template <int kApi, class Event>
void* StartOwnEvent(void* context, void* parent, const Event& event) noexcept {
  if (event.type == abi::kEventColl) return StartCollOf<kApi>(context, parent, event);
  if constexpr (kApi >= 4) {
    if (event.type == abi::kEventKernelCh) {
      return ProfilerObserver::StartKernelChannel(parent, event.kernel_ch.channel,
                                                  event.kernel_ch.stamp);
    }
  }
  if constexpr (kApi >= 5) {
    if (event.type == abi::kEventCollApi) {
      CallSeen call;
      call.collective = CollectiveFromEvent(event.coll_api.func);
      call.captured = event.coll_api.captured;
      return ProfilerObserver::StartCollApi(
          context, parent, call,
          {event.coll_api.count, TypeBytesFromEvent(event.coll_api.datatype)});
    }
    if (event.type == abi::kEventKernelLaunch) {
      return ProfilerObserver::StartKernelLaunch(context, parent, event.kernel_launch.stream);
    }
    if (event.type == abi::kEventGroupApi) return ProfilerObserver::StartGroupApi();
    if (event.type == abi::kEventP2pApi) ProfilerObserver::StartP2p(context);
  } else {
    if (event.type == abi::kEventGroup) return ProfilerObserver::StartGroup(context);
    if (event.type == abi::kEventP2p) ProfilerObserver::StartP2p(context);
  }
  return nullptr;
}

template <int kApi, class Event>
int StartEvent(void* context, void** handle, Event* event) noexcept {
  if (handle == nullptr) return abi::kSuccess;
  *handle = nullptr;
  if (event == nullptr) return abi::kSuccess;
  if (!SecondProfiler::Active()) [[likely]] {
    *handle = StartOwnEvent<kApi>(context, event->parent, *event);
    return abi::kSuccess;
  }
  void* parent = SecondProfiler::OwnHandle(event->parent);
  void* own = StartOwnEvent<kApi>(context, parent, *event);
  *handle = SecondProfiler::StartEvent(kApi, context, event, own);
  return abi::kSuccess;
}

// Of its own events the plugin uses only the stop of a launch: children of others come later.
inline int StopEvent(void* handle) noexcept {
  void* own = handle;
  if (SecondProfiler::Active()) {
    own = SecondProfiler::OwnHandle(handle);
    SecondProfiler::StopEvent(handle);
  }
  ProfilerObserver::StopKernelLaunch(own);
  return abi::kSuccess;
}

// v1 to v3 have no time stamps.
template <int kApi = 1>
int RecordNothing(void* handle, int state, abi::StateV1* arguments) noexcept {
  if (SecondProfiler::Active()) SecondProfiler::RecordState(kApi, handle, state, arguments);
  return abi::kSuccess;
}

// v4 and later. GroupApi's states come without arguments.
template <int kApi = 4>
int RecordState(void* handle, int state, abi::StateV4* arguments) noexcept {
  if (SecondProfiler::Active()) {
    SecondProfiler::RecordState(kApi, handle, state, arguments);
    handle = SecondProfiler::OwnHandle(handle);
  }
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
