// Profiler API v2: NCCL 2.24 and 2.25. Names are text.
#include "plugin/profiler/profiler_callbacks.h"

namespace diapason::plugin {

DIAPASON_EXPORT const abi::ProfilerV1<abi::EventV2, abi::StateV1> ncclProfiler_v2;
const abi::ProfilerV1<abi::EventV2, abi::StateV1> ncclProfiler_v2 = {
    "diapason", InitUnknown<2>,   StartEvent<2, abi::EventV2>,
    StopEvent,  RecordNothing<2>, EndObserving};

}  // namespace diapason::plugin
