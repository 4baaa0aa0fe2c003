#include "policy/merge.h"

#include <algorithm>

namespace diapason::policy {
namespace {

// Whether a call can match both.
bool Meet(const Rule& a, const Rule& b) {
  const auto meet = [](int64_t x, int64_t y) { return x == kAny || y == kAny || x == y; };
  return a.collective == b.collective && a.min_bytes <= b.max_bytes && b.min_bytes <= a.max_bytes &&
         meet(a.nodes, b.nodes) && meet(a.ranks, b.ranks);
}

}  // namespace

Policy MergeLearned(Policy policy, const std::vector<Rule>& learned) {
  std::erase_if(policy.rules, [&learned](const Rule& old) {
    return std::any_of(learned.begin(), learned.end(),
                       [&old](const Rule& rule) { return rule.Covers(old); });
  });
  std::vector<Rule> rules;
  for (const Rule& rule : learned) {
    const bool needed = !rule.config.IsDefault() ||
                        std::any_of(policy.rules.begin(), policy.rules.end(),
                                    [&rule](const Rule& old) { return Meet(rule, old); });
    if (needed) rules.push_back(rule);
  }
  rules.insert(rules.end(), policy.rules.begin(), policy.rules.end());
  if (rules.size() > kMostRules) rules.resize(kMostRules);
  policy.rules = std::move(rules);
  return policy;
}

}  // namespace diapason::policy
