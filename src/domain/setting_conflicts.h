#pragma once

#include <functional>
#include <string>
#include <vector>

#include "domain/finding.h"
#include "domain/vocabulary.h"

namespace diapason {

// The variables of a job, as far as diapason's own settings depend on them.
struct SettingsSeen {
  // The value of a variable; "" if it is not set.
  std::function<std::string(const char* name)> value;
  // Whether a file exists; empty: not known, because the variables are from another machine.
  std::function<bool(const std::string& path)> exists;
  int version = 0;      // of the library, in ncclGetVersion's encoding; 0: not known
  bool loaded = false;  // seen from inside the job, by the loaded tuner plugin
};

// Settings of diapason that have no effect, or not the intended one, together with the others.
struct SettingConflict {
  std::string id;  // as Finding's
  Severity severity = Severity::kWarning;
  std::string title;               // one sentence, no full stop
  std::vector<std::string> names;  // the variables it is about; some may not be set
  std::string action;
};

// Pure but for `exists`. The plugin, `env check` and `doctor` say the same by it. What the loaded
// plugin reports itself, at the moment it matters, is left out for it.
std::vector<SettingConflict> FindSettingConflicts(const SettingsSeen& seen);

// "x/y.conf" -> "x/y.overlap.conf": the policy for jobs that overlap compute with communication. A
// file without an extension gets ".overlap.conf" appended.
std::string OverlapSibling(const std::string& path);

}  // namespace diapason
