// Tuner API v7: NCCL 2.32.6 and later. As v6; the constants have a row more for each kind of limit.
#include "plugin/tuner/tuner_callbacks.h"

DIAPASON_EXPORT const diapason::plugin::abi::TunerV7 ncclTunerPlugin_v7;
const diapason::plugin::abi::TunerV7 ncclTunerPlugin_v7 = {
    "diapason", diapason::plugin::InitWithId<7>, diapason::plugin::AskByTable,
    diapason::plugin::End, diapason::plugin::AskChunkSize};
