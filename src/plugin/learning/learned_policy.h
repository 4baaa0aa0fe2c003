#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "domain/decision.h"
#include "learn/learner.h"
#include "policy/policy.h"

namespace diapason::plugin {

// What was learned about one context.
struct LearnedContext {
  Collective collective = Collective::kAllReduce;
  int band = 0;
  Config best;
  std::vector<learn::ArmSummary> arms;
};

// The row for it, with the evidence as its remark.
policy::Rule LearnedRow(const LearnedContext& context, const Shape& shape);

// Puts what was learned into a policy file, beside what it holds for other calls. Readers see the
// old file or the new one, never a part; writers of other communicators take turns, with a bounded
// wait. A file that is there and cannot be read is left alone: an error.
Status SaveLearned(const std::string& path, Library library, const Shape& shape,
                   const std::vector<LearnedContext>& contexts);

}  // namespace diapason::plugin
