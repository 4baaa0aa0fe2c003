#include "plugin/learning/turn_proposer.h"

#include <algorithm>

namespace diapason::plugin {
namespace {

bool HasRows(const policy::Policy& policy, const ContextHandover& context) {
  return std::any_of(policy.rules.begin(), policy.rules.end(), [&](const policy::Rule& rule) {
    return rule.collective == context.collective && rule.min_bytes <= BandLast(context.band) &&
           rule.max_bytes >= BandFirst(context.band);
  });
}

}  // namespace

TurnProposer::TurnProposer(const LearningHandover* learning, ContextHandover* context,
                           const Reporter* reporter, BackgroundStore* store)
    : learning_(learning),
      store_(store),
      proposer_(learning, context, reporter, store),
      has_rows_(HasRows(learning->policy, *context)) {}

void TurnProposer::Poll(double now, bool policy_turn, bool frozen) {
  if (!proposer_.Begin(now)) return;
  while (proposer_.IsBehind() && !store_->away(now)) {
    const bool takes_turns = has_rows_ && store_->cells()->Fullness() <= EpochProposer::kFullStore;
    Schedule schedule;
    schedule.segments = {{Config(),
                          takes_turns ? proposer_.TurnCalls(learning_->options.turn_seconds)
                                      : EpochProposer::kRestCalls,
                          true, takes_turns && policy_turn && !frozen}};
    if (proposer_.Propose(schedule, now) != EpochProposer::Outcome::kStands) return;
  }
}

}  // namespace diapason::plugin
