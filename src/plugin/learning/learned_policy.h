#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "domain/decision.h"
#include "learn/learner.h"
#include "policy/policy.h"

namespace diapason::plugin {

// The result of learning in one context.
struct LearnedContext {
  Collective collective = Collective::kAllReduce;
  int band = 0;
  Config best;
  std::vector<learn::ArmSummary> arms;
};

// The policy row for it, with the evidence as its remark.
policy::Rule LearnedRow(const LearnedContext& context, const Shape& shape);

// Merges the learned rows into a policy file and keeps its rows for other calls. The file is
// replaced atomically; a lock with a bounded wait serialises the writers of several communicators.
// An existing file that cannot be parsed is left unchanged, and an error is returned.
Status SaveLearned(const std::string& path, Library library, const Shape& shape,
                   const std::vector<LearnedContext>& contexts);

}  // namespace diapason::plugin
