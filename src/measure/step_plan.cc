#include "measure/step_plan.h"

namespace diapason::measure {

std::vector<Moment> PlanStep(const IterationSpec& spec) {
  std::vector<Moment> all(static_cast<size_t>(spec.chunks) + 1);
  for (size_t i = 0; i < spec.buckets.size(); ++i) {
    const Bucket& bucket = spec.buckets[i];
    all[static_cast<size_t>(bucket.after)].starts.push_back(i);
    // The end of the step waits for everything.
    if (bucket.before < spec.chunks) all[static_cast<size_t>(bucket.before)].joins.push_back(i);
  }
  std::vector<Moment> plan;
  for (size_t i = 0; i < all.size(); ++i) {
    Moment& moment = all[i];
    if (plan.empty() || !moment.starts.empty() || (spec.overlap && !moment.joins.empty())) {
      plan.push_back(std::move(moment));
    }
    if (i + 1 < all.size()) plan.back().seconds += spec.compute / spec.chunks;
  }
  return plan;
}

}  // namespace diapason::measure
