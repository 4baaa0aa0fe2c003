// Profiler API v6: NCCL 2.29 and later. As v5; copy-engine events are ignored.
#include "plugin/profiler/profiler_callbacks.h"

using diapason::plugin::abi::EventV6;

DIAPASON_EXPORT const diapason::plugin::abi::ProfilerV5<EventV6> ncclProfiler_v6;
const diapason::plugin::abi::ProfilerV5<EventV6> ncclProfiler_v6 = {
    "diapason",
    diapason::plugin::InitById<6>,
    diapason::plugin::StartEvent<6, EventV6>,
    diapason::plugin::StopEvent,
    diapason::plugin::RecordState,
    diapason::plugin::EndObserving};
