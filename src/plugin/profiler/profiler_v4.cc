// Profiler API v4: NCCL 2.27, RCCL 2.27. Reports the communicator's identity, and when kernels ran.
#include "plugin/profiler/profiler_callbacks.h"

namespace diapason::plugin {

DIAPASON_EXPORT const abi::ProfilerV4 ncclProfiler_v4;
const abi::ProfilerV4 ncclProfiler_v4 = {"diapason", InitKnown<4>,   StartEvent<4, abi::EventV4>,
                                         StopEvent,  RecordState<4>, EndObserving};

}  // namespace diapason::plugin
