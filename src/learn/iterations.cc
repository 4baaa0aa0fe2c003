#include "learn/iterations.h"

#include <algorithm>

#include "base/stats.h"

namespace diapason::learn {
namespace {

constexpr uint64_t kRepetitions = 3;
// A single repeated kind also occurs in the middle of iterations, so more repetitions are required.
constexpr uint64_t kRepetitionsOfOne = 16;
// A period that has held for so long stands, although other calls preceded it: an evaluation or the
// warm-up. A shorter stretch may be a part of a longer iteration.
constexpr uint64_t kLasting = 16;
constexpr uint64_t kSoonest = 8;
constexpr uint64_t kTimedRepetitions = 5;

}  // namespace

IterationFinder::IterationFinder(size_t longest)
    : longest_(std::clamp<size_t>(longest, 1, size_t{1} << 16)),
      next_look_(kSoonest),
      kinds_(longest_ * (kRepetitions + 1) + kRepetitionsOfOne),
      times_(kinds_.size()) {}

bool IterationFinder::Call(uint64_t kind, double time) {
  const uint64_t index = count_++;
  kinds_[index % kinds_.size()] = kind;
  times_[index % times_.size()] = time;
  if (in_step_) {
    const bool begins = place_ == 0;
    in_step_ = kind == cycle_[place_];
    place_ = place_ + 1 == period_ ? 0 : place_ + 1;
    if (in_step_) {
      ++stepped_;
      if (place_ == 0) strayed_ = 0;
      return begins;
    }
    lasting_ = period_ > 1 && stepped_ >= kLasting * period_;
    stepped_ = 0;
    next_look_ = std::min(next_look_, count_ + kSoonest);
  }
  if (period_ > 0) {
    if (EndsHere()) {
      in_step_ = true;
      place_ = 0;
      return false;
    }
    // The period is dropped if it does not return for long.
    if (++strayed_ > kRepetitions * (period_ + kRepetitionsOfOne)) {
      period_ = 0;
      lasting_ = false;
      origin_ = count_ - strayed_;
      next_look_ = count_;
    }
  }
  if (count_ >= next_look_ && !lasting_) {
    Look();
    // A search costs as much as the calls it examines: amortised, a few steps per call.
    next_look_ = count_ + std::max(kSoonest, Window() / 4);
  }
  return false;
}

uint64_t IterationFinder::Window() const {
  return std::min<uint64_t>(count_ - origin_, kinds_.size());
}

bool IterationFinder::EndsHere() const {
  for (size_t back = 0; back < period_; ++back) {
    if (KindAt(count_ - 1 - back) != cycle_[period_ - 1 - back]) return false;
  }
  return true;
}

void IterationFinder::Look() {
  // The newest calls, newest first: match[p] is the length for which they agree with the calls p
  // earlier (the Z function), so that the newest p + match[p] calls have the period p.
  const size_t length = Window();
  std::vector<uint64_t> calls(length);
  for (size_t i = 0; i < length; ++i) calls[i] = KindAt(count_ - 1 - i);
  std::vector<size_t> match(length, 0);
  size_t left = 0;
  size_t right = 0;
  for (size_t i = 1; i < length; ++i) {
    if (i < right) match[i] = std::min(right - i, match[i - left]);
    while (i + match[i] < length && calls[match[i]] == calls[i + match[i]]) ++match[i];
    if (i + match[i] > right) {
      left = i;
      right = i + match[i];
    }
  }
  size_t found = 0;
  size_t covered = 0;
  for (size_t period = 1; period <= longest_ && period < length; ++period) {
    const size_t reach = period + match[period];
    if (reach < period * (period == 1 ? kRepetitionsOfOne : kRepetitions)) continue;
    // Skip multiples of a shorter period.
    bool several = false;
    for (size_t part = 1; part <= period / 2 && !several; ++part) {
      several = period % part == 0 && part + match[part] >= reach;
    }
    if (several) continue;
    // A longer period must explain calls that the shorter one does not.
    if (found > 0 && reach < covered + period) continue;
    found = period;
    covered = reach;
    if (found > 1 && covered >= kLasting * found) break;
  }
  if (found > 0) Adopt(found, covered);
}

void IterationFinder::Adopt(size_t period, size_t covered) {
  // The position in the cycle with the longest typical pause.
  const uint64_t repetitions = std::min<uint64_t>((covered - 1) / period, kTimedRepetitions);
  size_t beginning = 0;
  double longest_pause = -1;
  for (size_t offset = 0; offset < period; ++offset) {
    std::vector<double> pauses;
    for (uint64_t i = 0; i < repetitions; ++i) {
      const uint64_t index = count_ - 1 - offset - i * period;
      pauses.push_back(TimeAt(index) - TimeAt(index - 1));
    }
    const double pause = Median(std::move(pauses));
    if (pause > longest_pause) {
      longest_pause = pause;
      beginning = offset;
    }
  }
  // The newest call that began an iteration is `beginning` calls back.
  period_ = period;
  cycle_.resize(period);
  for (size_t i = 0; i < period; ++i) cycle_[i] = KindAt(count_ - 1 - beginning - period + i);
  place_ = (beginning + 1) % period;
  in_step_ = true;
  lasting_ = false;
  strayed_ = 0;
  stepped_ = 0;
}

}  // namespace diapason::learn
