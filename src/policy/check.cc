#include "policy/check.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "base/text.h"

namespace diapason::policy {
namespace {

// The sizes that earlier rows with the same condition cover, as disjoint, non-adjacent ranges:
// start -> inclusive end.
class TakenSizes {
 public:
  bool Covers(uint64_t low, uint64_t high) const {
    auto after = ranges_.upper_bound(low);
    if (after == ranges_.begin()) return false;
    return std::prev(after)->second >= high;
  }
  void Take(uint64_t low, uint64_t high) {
    auto at = ranges_.upper_bound(low);
    if (at != ranges_.begin()) {
      const auto before = std::prev(at);
      // Merges adjacent ranges, so that a row over both counts as covered.
      if (before->second >= low || before->second + 1 == low) at = before;
    }
    while (at != ranges_.end() &&
           (at->first <= high || (high != UINT64_MAX && at->first == high + 1))) {
      low = std::min(low, at->first);
      high = std::max(high, at->second);
      at = ranges_.erase(at);
    }
    ranges_[low] = high;
  }

 private:
  std::map<uint64_t, uint64_t> ranges_;
};

using Condition = std::tuple<Collective, int64_t, int64_t, int, int>;

// Every condition that covers this rule's: each of its four fields as it is, or "any". A row that
// several rows with different conditions cover only together is not detected; a row covered by a
// single row always is.
std::vector<Condition> WiderConditions(const Rule& rule) {
  std::vector<Condition> conditions;
  for (int mask = 0; mask < 16; ++mask) {
    const Condition condition{rule.collective, (mask & 1) ? kAny : rule.nodes,
                              (mask & 2) ? kAny : rule.ranks, (mask & 4) ? kAny : rule.pipe_ops,
                              (mask & 8) ? kAny : rule.reg_buff};
    if (std::find(conditions.begin(), conditions.end(), condition) == conditions.end()) {
      conditions.push_back(condition);
    }
  }
  return conditions;
}

Diagnostic Warning(const Rule& rule, std::string message) {
  return {Severity::kWarning, rule.line, 0, std::move(message)};
}

void CheckShadows(const Policy& policy, std::vector<Diagnostic>* warnings) {
  std::map<Condition, TakenSizes> taken;
  for (const Rule& rule : policy.rules) {
    for (const Condition& condition : WiderConditions(rule)) {
      const auto found = taken.find(condition);
      if (found == taken.end() || !found->second.Covers(rule.min_bytes, rule.max_bytes)) continue;
      warnings->push_back(
          Warning(rule,
                  "this row never matches: earlier rows take all of its calls (a job that "
                  "learns may try it)"));
      break;
    }
    taken[{rule.collective, rule.nodes, rule.ranks, rule.pipe_ops, rule.reg_buff}].Take(
        rule.min_bytes, rule.max_bytes);
  }
}

bool AnyPairExists(const Rule& rule) {
  for (int algorithm = kTree; algorithm <= kPat; ++algorithm) {
    if (rule.config.algorithm != kKeep && rule.config.algorithm != algorithm) continue;
    for (int protocol = kLl; protocol <= kSimple; ++protocol) {
      if (rule.config.protocol != kKeep && rule.config.protocol != protocol) continue;
      if (PairExists(rule.collective, algorithm, protocol)) return true;
    }
  }
  return false;
}

void CheckPairs(const Policy& policy, std::vector<Diagnostic>* warnings) {
  for (const Rule& rule : policy.rules) {
    const std::string collective(CollectiveName(rule.collective));
    if (!AnyPairExists(rule)) {
      Config pair = rule.config;
      pair.channels = 0;
      warnings->push_back(
          Warning(rule, Format("{} never runs {}: the row leaves its calls to the library",
                               collective, ConfigText(policy.library, rule.collective, pair))));
    }
    const bool collnet =
        rule.config.algorithm == kCollNetDirect || rule.config.algorithm == kCollNetChain;
    if (collnet && rule.config.channels > 0) {
      warnings->push_back(
          Warning(rule,
                  "the channel count is not applied: for CollNet the library does not check "
                  "it"));
    }
    if (rule.reg_buff != kAny) {
      warnings->push_back(
          Warning(rule,
                  "the row depends on regBuff, which each rank computes by itself: it is "
                  "skipped unless DIAPASON_REGBUFF=1"));
    }
  }
}

}  // namespace

std::vector<Diagnostic> CheckRules(const Policy& policy) {
  std::vector<Diagnostic> warnings;
  CheckShadows(policy, &warnings);
  if (AsksTuner(policy.library)) CheckPairs(policy, &warnings);
  return warnings;
}

}  // namespace diapason::policy
