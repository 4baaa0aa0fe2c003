#pragma once

#include <string>

#include "base/settings.h"
#include "base/status.h"
#include "policy/parse.h"

namespace diapason::policy {

// Where the settings say the policy is. The order, first that is set wins:
//   DIAPASON_POLICY_INLINE
//   with DIAPASON_OVERLAP on: DIAPASON_POLICY_OVERLAP, else <stem>.overlap.conf beside the file
//   below DIAPASON_POLICY (or NCCL_TUNER_CONFIG_FILE)
struct Source {
  enum class Kind { kNone, kInline, kFile };
  Kind kind = Kind::kNone;
  std::string name;  // the path, or the variable's name
  std::string text;  // the inline word
};
Source FindSource(const Settings& settings);

// "x/y.conf" -> "x/y.overlap.conf"; a file without an extension just gets ".overlap.conf".
std::string OverlapSibling(const std::string& path);

// Reads and parses the policy. A policy whose header names a library other than options.library is
// refused. kNone yields an empty policy.
Result<Policy> LoadPolicy(const Source& source, const ParseOptions& options);

}  // namespace diapason::policy
