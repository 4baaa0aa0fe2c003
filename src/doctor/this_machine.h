#pragma once

#include "doctor/facts.h"

namespace diapason::doctor {

// GatherFacts of the machine this process runs on, with our plugin and the backends that work here.
// Sets DIAPASON_NCCL_LIBRARY (DIAPASON_RCCL_LIBRARY) to the job's library if the loader would open
// another: backends, and ranks that this process starts, then use it. Not while threads run.
CheckInputs GatherThisMachine();

// The tuner plugin beside this program, and whether it loads; no path where there is none.
PluginFile FindOwnPlugin();

}  // namespace diapason::doctor
