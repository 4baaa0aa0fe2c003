// Profiler API v5: NCCL 2.28, RCCL 2.28. Reports calls and launches.
#include "plugin/profiler/profiler_callbacks.h"

namespace diapason::plugin {

DIAPASON_EXPORT const abi::ProfilerV5<abi::EventV5> ncclProfiler_v5;
const abi::ProfilerV5<abi::EventV5> ncclProfiler_v5 = {
    "diapason", InitById<5>, StartEvent<5, abi::EventV5>, StopEvent, RecordState<5>, EndObserving};

}  // namespace diapason::plugin
