// AutoCCL's search: Xu et al., "AutoCCL: Automated Collective Communication Tuning for Accelerating
// Distributed and Parallel DNN Training", NSDI 2025, and the authors' code
// (github.com/gbxu/autoccl, ext-tuner/example). Algorithm and protocol span subspaces, which are
// searched in turn; in each of them coordinate descent follows the resource parameters, of which
// our data have only the channel count. A candidate's time is the mean of its fastest three
// quarters. A survey tries up to three candidates in one direction; when neither direction
// improves, the descent starts again from a candidate that was not visited, four times at most. A
// subspace whose best time is more than 1.5 times the best of all (3 times, early on) is given up.
// Written from the description.
#include <algorithm>
#include <cmath>
#include <deque>

#include "base/random.h"
#include "rivals/rival.h"

namespace diapason::bench {
namespace {

constexpr size_t kSurveyed = 3;
constexpr int kStarts = 5;
constexpr double kTooSlow = 1.5;
constexpr double kFarTooSlow = 3;
constexpr ptrdiff_t kJudgedAfter = 2;  // candidates of a subspace

class CoordinateDescent : public Rival {
 public:
  explicit CoordinateDescent(const RivalTask& task)
      : task_(task), times_(task.candidates.size()), random_(task.seed, 31) {
    for (PairLadder& ladder : PairLadders(task.candidates)) {
      Subspace subspace;
      subspace.ladder = std::move(ladder.candidates);
      subspace.visited.resize(subspace.ladder.size(), false);
      // The descent starts from the library's own resources.
      subspace.at = subspace.ladder.size() - 1;
      subspaces_.push_back(std::move(subspace));
    }
    waiting_.push_back(0);
  }

  size_t Next() override {
    while (!finished_ && waiting_.empty()) Advance();
    return finished_ ? chosen_ : waiting_.front();
  }
  void Took(size_t candidate, double seconds) override {
    times_.Add(candidate, seconds);
    if (finished_ || waiting_.empty() || candidate != waiting_.front()) return;
    if (times_.Count(candidate) < static_cast<size_t>(task_.repeats)) return;
    waiting_.pop_front();
    if (times_.FastMean(candidate) < times_.FastMean(chosen_)) chosen_ = candidate;
  }
  size_t Chosen() const override { return chosen_; }
  bool finished() const override { return finished_; }

 private:
  struct Subspace {
    std::vector<size_t> ladder;
    std::vector<bool> visited;
    std::vector<size_t> surveyed;  // since the last move
    size_t at = 0;
    bool begun = false;
    bool up = false;
    int failures = 0;  // directions without an improvement
    int starts = 1;
    bool done = false;
  };

  void Visit(Subspace* subspace, size_t place) {
    if (subspace->visited[place]) return;
    subspace->visited[place] = true;
    if (place != subspace->at) subspace->surveyed.push_back(place);
    waiting_.push_back(subspace->ladder[place]);
  }

  // Plans the next calls of the next subspace.
  void Advance() {
    if (std::all_of(subspaces_.begin(), subspaces_.end(),
                    [](const Subspace& one) { return one.done; })) {
      finished_ = true;
      return;
    }
    Subspace& subspace = subspaces_[turn_];
    turn_ = (turn_ + 1) % subspaces_.size();
    if (subspace.done) return;
    if (!subspace.begun) {
      subspace.begun = true;
      Visit(&subspace, subspace.at);
      return;
    }
    Move(&subspace);
    if (!subspace.done && waiting_.empty()) Survey(&subspace);
  }

  // Goes to the best of what the last survey tried, or turns.
  void Move(Subspace* subspace) {
    size_t best = subspace->at;
    for (const size_t place : subspace->surveyed) {
      if (TimeAt(*subspace, place) < TimeAt(*subspace, best)) best = place;
    }
    const auto visited = std::count(subspace->visited.begin(), subspace->visited.end(), true);
    const double ratio = TimeAt(*subspace, best) / times_.FastMean(chosen_);
    if (ratio > kFarTooSlow || (visited >= kJudgedAfter && ratio > kTooSlow)) {
      subspace->done = true;
    } else if (best != subspace->at) {
      subspace->at = best;
      subspace->failures = 0;
    } else if (!subspace->surveyed.empty()) {
      ++subspace->failures;
      subspace->up = !subspace->up;
    }
    subspace->surveyed.clear();
  }

  void Survey(Subspace* subspace) {
    for (; subspace->failures < 2; ++subspace->failures, subspace->up = !subspace->up) {
      for (size_t step = 1; step <= kSurveyed; ++step) {
        const size_t place = subspace->up ? subspace->at + step : subspace->at - step;
        if (place < subspace->ladder.size()) Visit(subspace, place);
      }
      if (!waiting_.empty()) return;
    }
    std::vector<size_t> rest;
    for (size_t i = 0; i < subspace->ladder.size(); ++i) {
      if (!subspace->visited[i]) rest.push_back(i);
    }
    if (rest.empty() || subspace->starts == kStarts) {
      subspace->done = true;
      return;
    }
    ++subspace->starts;
    subspace->failures = 0;
    subspace->at = rest[random_.Bits(draws_++) % rest.size()];
    Visit(subspace, subspace->at);
  }

  double TimeAt(const Subspace& subspace, size_t place) const {
    return times_.FastMean(subspace.ladder[place]);
  }

  const RivalTask task_;
  Times times_;
  const CounterRandom random_;
  uint64_t draws_ = 0;
  std::vector<Subspace> subspaces_;
  size_t turn_ = 0;
  std::deque<size_t> waiting_;
  size_t chosen_ = 0;
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<Rival> MakeCoordinateDescent(const RivalTask& task) {
  return std::make_unique<CoordinateDescent>(task);
}

}  // namespace diapason::bench
