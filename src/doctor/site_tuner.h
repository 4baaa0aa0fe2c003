#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "doctor/facts.h"
#include "domain/finding.h"
#include "knobs/check.h"

namespace diapason::doctor {

// The tuner that the library would load without diapason, by the rules that the plugin follows in a
// job (plugin/tuner/find_tuner.h), but from files alone: nothing is opened or executed. A network
// plugin counts whether or not it would work on this machine.
struct SiteTuner {
  PluginFile file;      // no path where there is none
  std::string because;  // "the library's default name", "inside the network plugin", ...
};
// `value` is that of NCCL_TUNER_PLUGIN, `network` that of NCCL_NET_PLUGIN. `checked_for` has the
// library, its version and the tree; `environment` the loader's variables.
SiteTuner FindSiteTuner(const std::string& value, const std::string& network,
                        const knobs::CheckedFor& checked_for, const Environment& environment);

// Names that tuner, and says whether diapason asks it first; and that RCCL's built-in tuner is off
// where it is set up and diapason is loaded. Nothing without checked_for.tree.
std::vector<Finding> CheckSiteTuner(const std::vector<knobs::Assignment>& assignments,
                                    const knobs::CheckedFor& checked_for,
                                    const Environment& environment);

}  // namespace diapason::doctor
