#include "job_profile/turns.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/sign_flip.h"
#include "base/stats.h"
#include "base/text.h"
#include "job_profile/iterations.h"
#include "job_profile/timeline.h"

namespace diapason::job_profile {
namespace {

// The host may be ahead of the GPU, so that the first and last iterations of a turn have part of
// the other one's time.
constexpr size_t kBorder = 2;
constexpr size_t kLeastOfHalf = 3;  // iterations in the half of a turn

// Iterations of one side, one after the other.
struct Block {
  Side side = Side::kNeither;
  std::vector<double> seconds;
};

std::vector<Block> BlocksOf(const std::vector<SidedIteration>& iterations) {
  std::vector<Block> blocks;
  for (const SidedIteration& one : iterations) {
    if (one.side != Side::kDefault && one.side != Side::kPolicy) continue;
    if (blocks.empty() || blocks.back().side != one.side) blocks.push_back({one.side, {}});
    blocks.back().seconds.push_back(one.seconds);
  }
  for (Block& block : blocks) {
    const size_t borders = std::min(2 * kBorder, block.seconds.size());
    block.seconds.erase(block.seconds.end() - static_cast<ptrdiff_t>(borders / 2),
                        block.seconds.end());
    block.seconds.erase(block.seconds.begin(),
                        block.seconds.begin() + static_cast<ptrdiff_t>(borders - borders / 2));
  }
  return blocks;
}

// The median of the first or the second half of a block.
std::optional<double> HalfOf(const Block& block, bool second) {
  const size_t half = block.seconds.size() / 2;
  if (half < kLeastOfHalf) return std::nullopt;
  const auto middle = block.seconds.begin() + static_cast<ptrdiff_t>(half);
  return second ? Median({middle, block.seconds.end()}) : Median({block.seconds.begin(), middle});
}

bool TookTurns(const Timeline& timeline) {
  for (const Call& call : timeline.calls) {
    if (call.turn != CallTurn::kNone) return true;
  }
  return false;
}

std::string TroubleOf(const TurnComparison& compared) {
  if (compared.source == Source::kNone) {
    return "no iterations were found: call diapason_step() once per iteration";
  }
  const size_t pure = compared.default_iterations + compared.policy_iterations;
  if (pure + compared.mixed_iterations == 0) {
    return "in no iteration did the policy have a say: no row matches its calls, or they are "
           "captured in graphs";
  }
  if (compared.policy_iterations == 0 && compared.mixed_iterations == 0) {
    return "the policy never had a turn: let the job run longer, or set DIAPASON_TURN to less";
  }
  if (compared.Decided()) return "";
  if (compared.mixed_iterations > pure) {
    return "most iterations ran partly with the default and partly with the policy: set "
           "DIAPASON_TURN to more, so that at least 20 iterations fit into a turn";
  }
  return Format(
      "the turns changed over {} times in a way that can be compared, and {} are needed: "
      "let the job run longer, or set DIAPASON_TURN to less",
      compared.log_gains.size(), TurnComparison::kLeastChanges);
}

}  // namespace

Side SideOf(const Timeline& timeline, const RankIteration& iteration) {
  bool by_default = false;
  bool by_policy = false;
  for (size_t i = iteration.first; i < iteration.end; ++i) {
    by_default = by_default || timeline.calls[i].turn == CallTurn::kDefault;
    by_policy = by_policy || timeline.calls[i].turn == CallTurn::kPolicy;
  }
  if (by_default && by_policy) return Side::kMixed;
  return by_default ? Side::kDefault : by_policy ? Side::kPolicy : Side::kNeither;
}

std::vector<RankIteration> IterationsOf(const Timeline& timeline,
                                        const std::vector<RankIteration>& iterations, Side side) {
  std::vector<Side> sides;
  sides.reserve(iterations.size());
  for (const RankIteration& one : iterations) sides.push_back(SideOf(timeline, one));
  std::vector<RankIteration> chosen;
  for (size_t first = 0; first < iterations.size();) {
    size_t end = first;
    while (end < iterations.size() && sides[end] == side) ++end;
    for (size_t i = first + kBorder; i + kBorder < end; ++i) chosen.push_back(iterations[i]);
    first = std::max(end, first + 1);
  }
  return chosen;
}

TurnComparison CompareSides(const std::vector<SidedIteration>& iterations) {
  TurnComparison compared;
  std::vector<double> all[2];
  for (const SidedIteration& one : iterations) {
    compared.mixed_iterations += one.side == Side::kMixed;
    if (one.side == Side::kDefault) all[0].push_back(one.seconds);
    if (one.side == Side::kPolicy) all[1].push_back(one.seconds);
  }
  compared.default_iterations = all[0].size();
  compared.policy_iterations = all[1].size();
  if (!all[0].empty()) compared.default_seconds = Median(all[0]);
  if (!all[1].empty()) compared.policy_seconds = Median(all[1]);
  const std::vector<Block> blocks = BlocksOf(iterations);
  for (size_t i = 0; i + 1 < blocks.size(); ++i) {
    const std::optional<double> before = HalfOf(blocks[i], true);
    const std::optional<double> after = HalfOf(blocks[i + 1], false);
    if (!before || !after) continue;
    const double ratio = std::log(*before / *after);
    compared.log_gains.push_back(blocks[i].side == Side::kDefault ? ratio : -ratio);
  }
  if (compared.log_gains.empty()) return compared;
  const ShiftEstimate shift = EstimateShift(compared.log_gains);
  compared.gain = std::exp(shift.estimate);
  compared.low = std::exp(shift.low);
  compared.high = std::exp(shift.high);
  return compared;
}

std::string TurnComparison::Verdict() const {
  if (!Decided()) return "cannot tell";
  if (low > 1) return "the policy is faster";
  return high < 1 ? "the policy is slower" : "no difference was found";
}

std::string TurnComparison::Text() const {
  if (!Decided()) return Verdict() + ": " + trouble;
  return Format(
      "{}: {} {} with the default and {} with the policy, {:.3f} x as fast "
      "[{:.3f}, "
      "{:.3f}]",
      Verdict(),
      source == Source::kCalls ? Format("{} calls take", kCallsTogether) : "an iteration takes",
      Milliseconds(default_seconds), Milliseconds(policy_seconds), gain, low, high);
}

Result<TurnComparison> TurnComparer::Finish(const CountedCalls& counted) {
  const Job job = maker_.Finish();
  std::optional<TurnComparison> best;
  for (const Timeline& timeline : job.ranks) {
    if (!TookTurns(timeline)) continue;
    const RankIterations found = counted.per_iteration > 0
                                     ? CountIterations(timeline, job.roles, counted)
                                     : FindIterations(timeline);
    std::vector<SidedIteration> iterations;
    for (const RankIteration& one : found.timed) {
      iterations.push_back({SideOf(timeline, one), one.length});
    }
    TurnComparison compared = CompareSides(iterations);
    compared.rank = timeline.label;
    compared.source = found.source;
    if (!best || compared.log_gains.size() > best->log_gains.size()) best = std::move(compared);
  }
  if (!best) {
    return NotFound(
        "no call of these journals was made in turns: run the job with DIAPASON_MODE=compare and a "
        "policy whose rows match its calls");
  }
  best->trouble = TroubleOf(*best);
  return *std::move(best);
}

}  // namespace diapason::job_profile
