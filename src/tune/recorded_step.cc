#include "tune/recorded_step.h"

#include <algorithm>
#include <map>

namespace diapason::tune {
namespace {

constexpr size_t kLongestStep = 2048;
// Fewer repetitions are no proof of a step.
constexpr size_t kLeastRepetitions = 4;
// The share of the calls that repetitions have to explain: the rest is start-up, evaluation, the
// end.
constexpr double kExplained = 0.5;
// A shorter step explains about as much as the best one. A step may repeat something itself (a
// layer) a hundred times before its last call.
constexpr double kAsGood = 0.995;
// A pause is so many times as long as the time between most calls.
constexpr uint64_t kPause = 4;
// The share of pauses that have to be equally many calls apart.
constexpr double kRegular = 0.6;

// Calls that repeat the one `period` before them, in runs of a whole period or more; those that
// begin a run count as well.
size_t Explained(const std::vector<TimedCall>& calls, size_t period) {
  size_t explained = 0;
  size_t run = 0;
  for (size_t i = period; i <= calls.size(); ++i) {
    if (i < calls.size() && calls[i].SameKind(calls[i - period])) {
      ++run;
      continue;
    }
    if (run >= period) explained += run + period;
    run = 0;
  }
  return std::min(explained, calls.size());
}

// The end of the longest run of repetitions.
size_t EndOfLongestRun(const std::vector<TimedCall>& calls, size_t period) {
  size_t longest = 0;
  size_t end = period;
  size_t run = 0;
  for (size_t i = period; i < calls.size(); ++i) {
    run = calls[i].SameKind(calls[i - period]) ? run + 1 : 0;
    if (run <= longest) continue;
    longest = run;
    end = i + 1;
  }
  return end;
}

uint64_t GapBefore(const std::vector<TimedCall>& calls, size_t i) {
  return calls[i].time_ns > calls[i - 1].time_ns ? calls[i].time_ns - calls[i - 1].time_ns : 0;
}

// How many calls of one kind are between two pauses, in [begin, end); 1: there are no regular
// pauses.
size_t CallsBetweenPauses(const std::vector<TimedCall>& calls, size_t begin, size_t end) {
  std::vector<uint64_t> gaps;
  for (size_t i = begin + 1; i < end; ++i) gaps.push_back(GapBefore(calls, i));
  if (gaps.empty()) return 1;
  std::vector<uint64_t> sorted = gaps;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2),
                   sorted.end());
  const uint64_t usual = sorted[sorted.size() / 2];
  std::map<size_t, size_t> distances;
  size_t pauses = 0;
  std::optional<size_t> last;
  for (size_t i = 0; i < gaps.size(); ++i) {
    if (gaps[i] <= kPause * usual) continue;
    if (last.has_value()) {
      ++distances[i - *last];
      ++pauses;
    }
    last = i;
  }
  size_t best = 1;
  size_t times = 0;
  for (const auto& [distance, count] : distances) {
    if (count <= times) continue;
    best = distance;
    times = count;
  }
  const bool regular = times >= kLeastRepetitions &&
                       static_cast<double>(times) >= kRegular * static_cast<double>(pauses);
  return regular && best <= kLongestStep ? best : 1;
}

// The place in the cycle before which the job pauses longest, summed over all repetitions.
size_t StartOfStep(const std::vector<TimedCall>& calls, size_t begin, size_t end, size_t period) {
  std::vector<uint64_t> pauses(period, 0);
  for (size_t i = std::max<size_t>(begin, 1); i < end; ++i) {
    pauses[(i - begin) % period] += GapBefore(calls, i);
  }
  return static_cast<size_t>(std::max_element(pauses.begin(), pauses.end()) - pauses.begin());
}

}  // namespace

std::optional<RecordedStep> FindStep(const std::vector<TimedCall>& calls) {
  const size_t longest = std::min(kLongestStep, calls.size() / kLeastRepetitions);
  std::vector<double> shares(longest + 1, 0);
  double best = 0;
  for (size_t period = 1; period <= longest; ++period) {
    shares[period] =
        static_cast<double>(Explained(calls, period)) / static_cast<double>(calls.size());
    best = std::max(best, shares[period]);
  }
  if (best < kExplained) return std::nullopt;
  size_t period = 1;
  while (shares[period] < kAsGood * best) ++period;
  const size_t end = EndOfLongestRun(calls, period);
  size_t begin = end - period;
  while (begin > 0 && calls[begin - 1].SameKind(calls[begin - 1 + period])) --begin;
  RecordedStep step;
  step.outside = calls.size() - Explained(calls, period);
  const size_t start = begin + StartOfStep(calls, begin, end, period);
  const size_t repeated = period == 1 ? CallsBetweenPauses(calls, begin, end) : 1;
  for (size_t i = 0; i < repeated; ++i) {
    for (size_t k = 0; k < period; ++k) {
      step.calls.push_back(calls[begin + (start - begin + k) % period]);
    }
  }
  return step;
}

}  // namespace diapason::tune
