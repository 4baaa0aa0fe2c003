// Lagom's rule as far as it is public to us: Xu et al., "Lagom: Unleashing the Power of
// Communication and Computation Overlapping for Distributed LLM Training", arXiv 2602.20656. Its
// abstract and introduction say that communication gets as few resources as balance it with
// compute, and that a search by priority makes the number of trials linear. Our reading for calls
// without compute: every pair starts with its fewest channels; the pair with the best time so far
// is raised by one step, until a step gains nothing. The paper's cost model of compute has no
// counterpart in our data. Written from the description.
#include <cmath>

#include "rivals/rival.h"

namespace diapason::bench {
namespace {

constexpr double kGain = 0.01;  // a smaller one does not justify more channels

class FewestChannels : public Rival {
 public:
  explicit FewestChannels(const RivalTask& task)
      : task_(task), times_(task.candidates.size()), pairs_(PairLadders(task.candidates)) {
    steps_.resize(pairs_.size(), 0);
    stopped_.resize(pairs_.size(), false);
  }

  size_t Next() override { return finished_ ? chosen_ : trying_; }
  void Took(size_t candidate, double seconds) override {
    times_.Add(candidate, seconds);
    if (finished_ || candidate != trying_) return;
    if (times_.Count(candidate) < static_cast<size_t>(task_.repeats)) return;
    if (times_.Median(candidate) < times_.Median(chosen_)) chosen_ = candidate;
    Advance();
  }
  size_t Chosen() const override { return chosen_; }
  bool finished() const override { return finished_; }

 private:
  double TimeOf(size_t pair) const { return times_.Median(pairs_[pair].candidates[steps_[pair]]); }

  void Advance() {
    if (begun_ < pairs_.size()) {
      trying_ = pairs_[begun_++].candidates[0];
      return;
    }
    if (raised_ < pairs_.size()) {
      const std::vector<size_t>& ladder = pairs_[raised_].candidates;
      const double before = times_.Median(ladder[steps_[raised_]]);
      const double after = times_.Median(ladder[steps_[raised_] + 1]);
      if (after < before * (1 - kGain)) {
        ++steps_[raised_];
      } else {
        stopped_[raised_] = true;
      }
    }
    raised_ = pairs_.size();
    for (size_t i = 0; i < pairs_.size(); ++i) {
      if (stopped_[i] || steps_[i] + 1 >= pairs_[i].candidates.size()) continue;
      if (raised_ == pairs_.size() || TimeOf(i) < TimeOf(raised_)) raised_ = i;
    }
    if (raised_ == pairs_.size()) {
      finished_ = true;
      return;
    }
    trying_ = pairs_[raised_].candidates[steps_[raised_] + 1];
  }

  const RivalTask task_;
  Times times_;
  const std::vector<PairLadder> pairs_;
  std::vector<size_t> steps_;  // the channel count in use, by pair
  std::vector<bool> stopped_;
  size_t begun_ = 0;
  size_t raised_ = SIZE_MAX;  // the pair whose next step is tried
  size_t trying_ = 0;
  size_t chosen_ = 0;
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<Rival> MakeFewestChannels(const RivalTask& task) {
  return std::make_unique<FewestChannels>(task);
}

}  // namespace diapason::bench
