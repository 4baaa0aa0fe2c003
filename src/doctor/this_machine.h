#pragma once

#include "doctor/facts.h"

namespace diapason::doctor {

// GatherFacts of the machine this process runs on, with our plugin and the backends that work here.
CheckInputs GatherThisMachine();

// The tuner plugin beside this program, and whether it loads; no path where there is none.
PluginFile FindOwnPlugin();

}  // namespace diapason::doctor
