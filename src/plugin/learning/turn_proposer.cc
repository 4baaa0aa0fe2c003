#include "plugin/learning/turn_proposer.h"

#include <algorithm>

namespace diapason::plugin {
namespace {

constexpr double kEpochsPerTurn = 8;
constexpr uint64_t kFirstCalls = 8;  // while the rate of calls is unknown
constexpr uint64_t kMostEpochCalls = 4096;
// Where both turns are the same, and when the store is nearly full.
constexpr uint64_t kRestCalls = uint64_t{1} << 16;
constexpr double kFullStore = 0.75;

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

// Long enough for four epochs to last until a proposal stands.
uint64_t TurnProposer::EpochCalls() const {
  const double calls = proposer_.rate() * learning_->options.turn_seconds / kEpochsPerTurn;
  const auto wanted = calls > 0 ? static_cast<uint64_t>(calls) : kFirstCalls;
  return std::clamp<uint64_t>(std::max(wanted, proposer_.lead() / 2), 1, kMostEpochCalls);
}

void TurnProposer::Poll(double now, bool policy_turn, bool frozen) {
  if (!proposer_.Begin(now)) return;
  while (proposer_.IsBehind() && !store_->away(now)) {
    const bool takes_turns = has_rows_ && store_->cells()->Fullness() <= kFullStore;
    Schedule schedule;
    schedule.segments = {{Config(), takes_turns ? EpochCalls() : kRestCalls, true,
                          takes_turns && policy_turn && !frozen}};
    if (proposer_.Propose(schedule, now) != EpochProposer::Outcome::kStands) return;
  }
}

}  // namespace diapason::plugin
