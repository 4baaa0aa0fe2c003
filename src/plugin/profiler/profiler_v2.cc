// Profiler API v2: NCCL 2.24 and 2.25. Names are text.
#include "plugin/profiler/profiler_callbacks.h"

using diapason::plugin::abi::EventV2;

DIAPASON_EXPORT const diapason::plugin::abi::ProfilerV1<EventV2, diapason::plugin::abi::StateV1>
    ncclProfiler_v2;
const diapason::plugin::abi::ProfilerV1<EventV2, diapason::plugin::abi::StateV1> ncclProfiler_v2 = {
    "diapason",
    diapason::plugin::InitUnknown<2>,
    diapason::plugin::StartEvent<2, EventV2>,
    diapason::plugin::StopEvent,
    diapason::plugin::RecordNothing,
    diapason::plugin::EndObserving};
