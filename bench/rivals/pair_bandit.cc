// The bandit of a public course project (github.com/madanva/CS244C-project-repo): epsilon-greedy
// over three pairs, tree/simple, tree/ll128 and ring/simple, by running means of logged times, with
// epsilon 0.1. The library's default and channel counts are no arms. Where the library offers none
// of the three, the default runs. Written from the description.
#include "base/random.h"
#include "rivals/rival.h"

namespace diapason::bench {
namespace {

constexpr double kEpsilon = 0.1;

class PairBandit : public Rival {
 public:
  explicit PairBandit(const RivalTask& task)
      : times_(task.candidates.size()), random_(task.seed, 41) {
    for (const PairLadder& ladder : PairLadders(task.candidates)) {
      const bool tree = ladder.algorithm == kTree;
      if ((tree && (ladder.protocol == kSimple || ladder.protocol == kLl128)) ||
          (ladder.algorithm == kRing && ladder.protocol == kSimple)) {
        arms_.push_back(ladder.candidates.back());
      }
    }
  }

  size_t Next() override {
    if (arms_.empty()) return 0;
    for (const size_t arm : arms_) {
      if (times_.Count(arm) == 0) return arm;
    }
    if (random_.Uniform(draws_++) < kEpsilon) return arms_[random_.Bits(draws_++) % arms_.size()];
    return Chosen();
  }
  void Took(size_t candidate, double seconds) override { times_.Add(candidate, seconds); }
  size_t Chosen() const override {
    size_t chosen = arms_.empty() ? 0 : arms_[0];
    for (const size_t arm : arms_) {
      if (times_.Mean(arm) < times_.Mean(chosen)) chosen = arm;
    }
    return chosen;
  }
  bool finished() const override { return arms_.empty(); }

 private:
  Times times_;
  const CounterRandom random_;
  uint64_t draws_ = 0;
  std::vector<size_t> arms_;
};

}  // namespace

std::unique_ptr<Rival> MakePairBandit(const RivalTask& task) {
  return std::make_unique<PairBandit>(task);
}

}  // namespace diapason::bench
