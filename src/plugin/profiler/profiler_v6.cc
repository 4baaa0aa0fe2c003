// Profiler API v6: NCCL 2.29 and 2.30. As v5; copy-engine events are ignored.
#include "plugin/profiler/profiler_callbacks.h"

namespace diapason::plugin {

DIAPASON_EXPORT const abi::ProfilerV5<abi::EventV6> ncclProfiler_v6;
const abi::ProfilerV5<abi::EventV6> ncclProfiler_v6 = {
    "diapason", InitById<6>, StartEvent<6, abi::EventV6>, StopEvent, RecordState<6>, EndObserving};

}  // namespace diapason::plugin
