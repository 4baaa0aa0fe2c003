// Tuner API v4: NCCL 2.24 to 2.27, RCCL 2.27. Adds regBuff.
#include "plugin/tuner/tuner_callbacks.h"

DIAPASON_EXPORT const diapason::plugin::abi::TunerV4 ncclTunerPlugin_v4;
const diapason::plugin::abi::TunerV4 ncclTunerPlugin_v4 = {
    "diapason", diapason::plugin::InitWithoutId<4>, diapason::plugin::AskByTable,
    diapason::plugin::End};
