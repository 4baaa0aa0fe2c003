// Tuner API v5: NCCL 2.28 and 2.29, RCCL 2.28. Passes the communicator's id.
#include "plugin/tuner/tuner_callbacks.h"

DIAPASON_EXPORT const diapason::plugin::abi::TunerV5 ncclTunerPlugin_v5;
const diapason::plugin::abi::TunerV5 ncclTunerPlugin_v5 = {
    "diapason", diapason::plugin::InitWithId<5>, diapason::plugin::AskByTable,
    diapason::plugin::End};
