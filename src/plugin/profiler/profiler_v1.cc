// Profiler API v1: NCCL 2.23. Names are numbers; nothing is timed.
#include "plugin/profiler/profiler_callbacks.h"

using diapason::plugin::abi::EventV1;

DIAPASON_EXPORT const diapason::plugin::abi::ProfilerV1<EventV1, diapason::plugin::abi::StateV1>
    ncclProfiler_v1;
const diapason::plugin::abi::ProfilerV1<EventV1, diapason::plugin::abi::StateV1> ncclProfiler_v1 = {
    "diapason",
    diapason::plugin::InitUnknown<1>,
    diapason::plugin::StartEvent<1, EventV1>,
    diapason::plugin::StopEvent,
    diapason::plugin::RecordNothing,
    diapason::plugin::EndObserving};
