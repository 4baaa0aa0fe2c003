// Profiler API v3: NCCL 2.26. Reports kernels, but not when they ran.
#include "plugin/profiler/profiler_callbacks.h"

using diapason::plugin::abi::EventV3;

DIAPASON_EXPORT const diapason::plugin::abi::ProfilerV1<EventV3, diapason::plugin::abi::StateV1>
    ncclProfiler_v3;
const diapason::plugin::abi::ProfilerV1<EventV3, diapason::plugin::abi::StateV1> ncclProfiler_v3 = {
    "diapason",
    diapason::plugin::InitUnknown<3>,
    diapason::plugin::StartEvent<3, EventV3>,
    diapason::plugin::StopEvent,
    diapason::plugin::RecordNothing,
    diapason::plugin::EndObserving};
