#include "learn/cycle_watch.h"

#include <algorithm>
#include <vector>

#include "base/stats.h"

namespace diapason::learn {
namespace {

constexpr size_t kKeptCycles = 64;
constexpr size_t kEnoughCycles = 16;
// Of the calls, so many have ended before the next one.
constexpr double kWaits = 15.0 / 16;
constexpr double kWaitsNoMore = 7.0 / 8;
// Of a cycle, so much is the call itself: otherwise its noise hides the difference between two
// configurations, which the time on the GPU shows.
constexpr double kLargePart = 0.25;
constexpr double kSmallPart = 0.15;

template <typename Value>
void Keep(Value value, std::deque<Value>* kept) {
  kept->push_back(value);
  if (kept->size() > kKeptCycles) kept->pop_front();
}

double MedianOf(const std::deque<double>& values) {
  return Median(std::vector<double>(values.begin(), values.end()));
}

}  // namespace

void CycleWatch::AddCycle(double seconds, bool ended) {
  ++seen_;
  Keep(seconds, &cycles_);
  Keep(ended, &ended_);
  Judge();
}

void CycleWatch::AddGpuTime(double seconds) {
  Keep(seconds, &gpu_times_);
  Judge();
}

double CycleWatch::EndedShare() const {
  return static_cast<double>(std::count(ended_.begin(), ended_.end(), true)) /
         static_cast<double>(ended_.size());
}

double CycleWatch::GpuShare() const { return MedianOf(gpu_times_) / MedianOf(cycles_); }

void CycleWatch::Judge() {
  if (cycles_.size() < kEnoughCycles || gpu_times_.size() < kEnoughCycles) return;
  const bool waits = EndedShare() >= (is_reward_ ? kWaitsNoMore : kWaits);
  is_reward_ = waits && GpuShare() >= (is_reward_ ? kSmallPart : kLargePart);
}

std::string CycleWatch::Trouble() const {
  if (cycles_.size() < kEnoughCycles) {
    return "too few calls follow each other without another call between them";
  }
  if (EndedShare() < kWaits) return "the program does not wait for its calls";
  if (gpu_times_.size() < kEnoughCycles) return "too few calls were timed on the GPU";
  return "the calls are a small part of the time between them";
}

}  // namespace diapason::learn
