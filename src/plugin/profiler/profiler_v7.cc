// Profiler API v7: NCCL 2.31 and later. As v6; runs of symmetric kernels are marked, and phases of
// kernels are ignored.
#include "plugin/profiler/profiler_callbacks.h"

namespace diapason::plugin {

DIAPASON_EXPORT const abi::ProfilerV5<abi::EventV7> ncclProfiler_v7;
const abi::ProfilerV5<abi::EventV7> ncclProfiler_v7 = {
    "diapason", InitById<7>, StartEvent<7, abi::EventV7>, StopEvent, RecordState<7>, EndObserving};

}  // namespace diapason::plugin
