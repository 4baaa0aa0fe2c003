// Profiler API v4: NCCL 2.27, RCCL 2.27. Reports the communicator's identity, and when kernels ran.
#include "plugin/profiler/profiler_callbacks.h"

DIAPASON_EXPORT const diapason::plugin::abi::ProfilerV4 ncclProfiler_v4;
const diapason::plugin::abi::ProfilerV4 ncclProfiler_v4 = {
    "diapason",
    diapason::plugin::InitKnown<4>,
    diapason::plugin::StartEvent<4, diapason::plugin::abi::EventV4>,
    diapason::plugin::StopEvent,
    diapason::plugin::RecordState,
    diapason::plugin::EndObserving};
