// Profiler API v3: NCCL 2.26. Reports kernels, but not when they ran.
#include "plugin/profiler/profiler_callbacks.h"

namespace diapason::plugin {

DIAPASON_EXPORT const abi::ProfilerV1<abi::EventV3, abi::StateV1> ncclProfiler_v3;
const abi::ProfilerV1<abi::EventV3, abi::StateV1> ncclProfiler_v3 = {
    "diapason", InitUnknown<3>,   StartEvent<3, abi::EventV3>,
    StopEvent,  RecordNothing<3>, EndObserving};

}  // namespace diapason::plugin
