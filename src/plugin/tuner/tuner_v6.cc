// Tuner API v6: NCCL 2.30 to 2.32.3, RCCL 2.30 and later. Adds the chunk size, which stays the
// library's.
#include "plugin/tuner/tuner_callbacks.h"

DIAPASON_EXPORT const diapason::plugin::abi::TunerV6 ncclTunerPlugin_v6;
const diapason::plugin::abi::TunerV6 ncclTunerPlugin_v6 = {
    "diapason", diapason::plugin::InitWithId<6>, diapason::plugin::AskByTable,
    diapason::plugin::End, diapason::plugin::AskChunkSize};
