#pragma once

#include <string>

#include "base/settings.h"
#include "base/status.h"
#include "policy/parse.h"

namespace diapason::policy {

// Where the settings say the policy is. The first of these that is set counts: 1.
// DIAPASON_POLICY_INLINE; 2. with DIAPASON_OVERLAP on, DIAPASON_POLICY_OVERLAP, or else
// <stem>.overlap.conf beside 3; 3. DIAPASON_POLICY, also known as NCCL_TUNER_CONFIG_FILE; 4.
// LearnedFile, if the file exists.
struct Source {
  enum class Kind { kNone, kInline, kFile };
  Kind kind = Kind::kNone;
  std::string name;  // the path, or the variable's name
  std::string text;  // the inline word
};
Source FindSource(const Settings& settings);

// Where a job stores what it learns: DIAPASON_LEARNED, or with DIAPASON_OVERLAP on its sibling,
// since the best choice beside compute differs from the best choice alone. Empty: nowhere.
std::string LearnedFile(const Settings& settings);

// Reads and parses the policy. A policy whose header names a library other than options.library is
// rejected. kNone yields an empty policy.
Result<Policy> LoadPolicy(const Source& source, const ParseOptions& options);

}  // namespace diapason::policy
