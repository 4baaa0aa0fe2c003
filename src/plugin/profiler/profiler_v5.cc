// Profiler API v5: NCCL 2.28, RCCL 2.28. Reports calls and launches.
#include "plugin/profiler/profiler_callbacks.h"

using diapason::plugin::abi::EventV5;

DIAPASON_EXPORT const diapason::plugin::abi::ProfilerV5<EventV5> ncclProfiler_v5;
const diapason::plugin::abi::ProfilerV5<EventV5> ncclProfiler_v5 = {
    "diapason",
    diapason::plugin::InitById<5>,
    diapason::plugin::StartEvent<5, EventV5>,
    diapason::plugin::StopEvent,
    diapason::plugin::RecordState,
    diapason::plugin::EndObserving};
