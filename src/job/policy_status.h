#pragma once

#include <string>
#include <vector>

#include "journal/reader.h"
#include "policy/policy.h"

namespace diapason::job {

// Whether a policy still fits: the machine and the library it was made for, and the calls that jobs
// make now, as their journals have them. Pure: the caller reads files and looks at the machine.

struct PolicyStatusInput {
  policy::Policy policy;
  std::string machine_here;                // MachineFingerprint(); "": not known
  std::vector<std::string> made_versions;  // of the library, by the policy's measurements
  std::vector<journal::JournalContents> journals;
};

// Calls of one collective and size in communicators of one shape.
struct StatusCall {
  Collective collective = Collective::kAllReduce;
  uint64_t bytes = 0;
  Shape shape;
  size_t calls = 0;
  double seconds = 0;  // of those that were timed
  int line = 0;        // of the row that matches; 0: none
};

struct PolicyStatus {
  size_t rows = 0;
  size_t rows_used = 0;  // that a call of the journals matches
  std::string made_for;  // the machine; "": the policy does not say
  std::string machine_here;
  std::vector<std::string> made_versions;
  std::vector<std::string> versions_now;  // of the journals
  size_t calls = 0;
  size_t covered_calls = 0;  // a row matches
  size_t applied_calls = 0;  // and the row was applied, by the journals
  double seconds = 0;
  double covered_seconds = 0;
  std::vector<StatusCall> uncovered;  // those with most time first
  // Sentences: why to tune again. Empty: the policy fits, as far as is known.
  std::vector<std::string> reasons;
  std::vector<std::string> unknown;  // what could not be judged, and what it needs

  double CoveredShare() const;  // of the time, else of the calls; 1 without any
};

// Less of the time than this on rows of the policy is a reason to tune again.
inline constexpr double kLeastCovered = 0.5;

PolicyStatus JudgePolicy(const PolicyStatusInput& input);

}  // namespace diapason::job
