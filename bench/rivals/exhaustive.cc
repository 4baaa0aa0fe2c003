// Every candidate in turn, `repeats` rounds; then the one with the lowest median runs.
#include "rivals/rival.h"

namespace diapason::bench {
namespace {

class Exhaustive : public Rival {
 public:
  explicit Exhaustive(const RivalTask& task) : task_(task), times_(task.candidates.size()) {}

  size_t Next() override { return finished() ? chosen_ : made_ % task_.candidates.size(); }
  void Took(size_t candidate, double seconds) override {
    if (finished()) return;
    times_.Add(candidate, seconds);
    ++made_;
    for (size_t i = 0; i < task_.candidates.size(); ++i) {
      if (times_.Median(i) < times_.Median(chosen_)) chosen_ = i;
    }
  }
  size_t Chosen() const override { return chosen_; }
  bool finished() const override {
    return made_ >= task_.candidates.size() * static_cast<size_t>(task_.repeats);
  }

 private:
  const RivalTask task_;
  Times times_;
  size_t made_ = 0;
  size_t chosen_ = 0;
};

}  // namespace

std::unique_ptr<Rival> MakeExhaustive(const RivalTask& task) {
  return std::make_unique<Exhaustive>(task);
}

}  // namespace diapason::bench
