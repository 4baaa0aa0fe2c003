#include "plugin/learning/order_proposer.h"

namespace diapason::plugin {
namespace {

constexpr double kNoOrder = 0.25;  // seconds, until there is one

}  // namespace

OrderProposer::OrderProposer(const LearningHandover* learning, ContextHandover* context,
                             const Reporter* reporter, BackgroundStore* store)
    : learning_(learning),
      context_(context),
      store_(store),
      candidates_(learning, context, store),
      proposer_(learning, context, reporter, store) {}

Config OrderProposer::Wanted(const policy::Order& order) const {
  const uint64_t bytes = BandLast(context_->band);
  for (const policy::Rule& rule : order.rows.rules) {
    if (rule.collective != context_->collective || rule.min_bytes > bytes ||
        rule.max_bytes < bytes || !rule.MatchesShape(learning_->options.shape)) {
      continue;
    }
    return candidates_.MayTry(rule.config) ? rule.config : Config();
  }
  return {};
}

void OrderProposer::Poll(double now, const policy::Order* order, bool frozen) {
  if (!offers_known_) offers_known_ = candidates_.GatherOffers(now);
  if (!proposer_.Begin(now)) return;
  while (proposer_.IsBehind() && !store_->away(now)) {
    const bool follows = order != nullptr && offers_known_ && !frozen;
    const double seconds =
        order != nullptr ? std::chrono::duration<double>(order->length).count() : kNoOrder;
    Schedule schedule;
    schedule.segments = {{follows ? Wanted(*order) : Config(), proposer_.TurnCalls(seconds)}};
    if (proposer_.Propose(schedule, now) != EpochProposer::Outcome::kStands) return;
  }
}

}  // namespace diapason::plugin
