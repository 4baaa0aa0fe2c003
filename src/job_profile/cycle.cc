#include "job_profile/cycle.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/random.h"
#include "base/stats.h"

namespace diapason::job_profile {
namespace {

constexpr size_t kMostCandidates = 48;
constexpr size_t kLongestPeriod = size_t{1} << 16;
constexpr size_t kRepetitions = 3;
constexpr double kLeastShare = 0.4;  // of all calls that a period has to explain
constexpr double kExplainsMore = 1.001;
constexpr size_t kMostParts = 8;  // of an iteration; more are iterations of their own
// Calls: shorter repetitions inside a longer one are layers.
constexpr size_t kShortestIteration = 4;
constexpr double kLongPause = 1.5;  // over the shorter ones
constexpr double kLeastRise = 1.1;  // between two pauses, sorted, that a border may divide
constexpr size_t kMostBorders = 32;
constexpr double kRegular = 0.6;  // of the long pauses that have another at the usual distance
constexpr double kAsRegular = 1.1;
constexpr size_t kMostHiccups = 3;  // between two iterations
constexpr double kAlike = 0.98;     // of what any period explains
constexpr uint64_t kAfterPause = 0xa5c3'0f96'1e2d'4b78;

// How many calls are as the call `period` before, in stretches of at least two periods.
size_t Explained(const std::vector<uint64_t>& kinds, size_t period) {
  size_t explained = 0;
  size_t stretch = 0;
  const size_t least = (kRepetitions - 1) * period;
  for (size_t i = period; i <= kinds.size(); ++i) {
    if (i < kinds.size() && kinds[i] == kinds[i - period]) {
      ++stretch;
      continue;
    }
    if (stretch >= least) explained += stretch;
    stretch = 0;
  }
  return explained;
}

// The most frequent distances between equal runs of 1, 4 and 16 calls.
std::vector<size_t> Candidates(const std::vector<uint64_t>& kinds) {
  std::unordered_map<size_t, size_t> weights;
  for (const size_t length : {size_t{1}, size_t{4}, size_t{16}, size_t{64}}) {
    std::unordered_map<uint64_t, size_t> last;
    for (size_t i = 0; i + length <= kinds.size(); i += 1) {
      uint64_t hash = length;
      for (size_t k = 0; k < length; ++k) hash = MixBits(hash ^ kinds[i + k]);
      const auto [at, fresh] = last.emplace(hash, i);
      if (!fresh) {
        // Long periods have as many calls per repetition: a distance counts once per repetition.
        if (i - at->second <= kLongestPeriod) ++weights[i - at->second];
        at->second = i;
      }
    }
  }
  std::vector<std::pair<size_t, size_t>> order;
  for (const auto& [distance, weight] : weights) {
    if (distance * kRepetitions <= kinds.size()) order.emplace_back(weight, distance);
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  if (order.size() > kMostCandidates) order.resize(kMostCandidates);
  std::vector<size_t> candidates;
  for (const auto& [weight, distance] : order) candidates.push_back(distance);
  std::sort(candidates.begin(), candidates.end());
  return candidates;
}

struct Period {
  size_t length = 0;
  size_t explained = 0;
};

// Ascending, each explaining more calls than those before it.
std::vector<Period> Periods(const std::vector<uint64_t>& kinds) {
  std::vector<Period> periods;
  for (const size_t candidate : Candidates(kinds)) {
    const size_t explained = Explained(kinds, candidate);
    if (static_cast<double>(explained) < kLeastShare * static_cast<double>(kinds.size())) continue;
    const double before = periods.empty() ? 0 : static_cast<double>(periods.back().explained);
    // The first repetition of a longer period is not explained by it.
    const double known = static_cast<double>(explained + candidate);
    const double known_before =
        before + (periods.empty() ? 0 : static_cast<double>(periods.back().length));
    if (!periods.empty() && known < kExplainsMore * known_before) continue;
    periods.push_back({candidate, explained});
  }
  return periods;
}

// The median pause before every position of a period, over its exact repetitions; the position of a
// call is its index modulo the period within the longest stretch.
struct Phase {
  size_t first = 0;  // of the stretch
  std::vector<double> pauses;
};
Phase PhaseOf(const Sequence& sequence, size_t period) {
  constexpr size_t kMostTimed = 64;
  Phase phase;
  size_t longest = 0;
  size_t stretch = 0;
  for (size_t i = period; i <= sequence.kinds.size(); ++i) {
    if (i < sequence.kinds.size() && sequence.kinds[i] == sequence.kinds[i - period]) {
      ++stretch;
      continue;
    }
    if (stretch > longest) {
      longest = stretch;
      phase.first = i - stretch - period;
    }
    stretch = 0;
  }
  for (size_t offset = 0; offset < period; ++offset) {
    std::vector<double> pauses;
    for (size_t i = phase.first + offset;
         i < phase.first + longest + period && pauses.size() < kMostTimed; i += period) {
      if (i > 0) pauses.push_back(sequence.pauses[i]);
    }
    phase.pauses.push_back(pauses.empty() ? 0 : Median(std::move(pauses)));
  }
  return phase;
}

// Whether the parts of a period are iterations, and the period has one that is different: there are
// more of them than gradients are accumulated over, and each has one pause that stands out.
bool PartsAreIterations(const Sequence& sequence, size_t period, size_t part) {
  if (part < kShortestIteration || (period + part / 2) / part <= kMostParts) return false;
  std::vector<double> pauses = PhaseOf(sequence, part).pauses;
  std::sort(pauses.begin(), pauses.end());
  return pauses.back() >= kLongPause * pauses[pauses.size() - 2];
}

Cycle CycleOf(const Sequence& sequence, size_t period, size_t part) {
  const Phase phase = PhaseOf(sequence, period);
  const auto longest = std::max_element(phase.pauses.begin(), phase.pauses.end());
  const size_t first = phase.first + static_cast<size_t>(longest - phase.pauses.begin());
  Cycle cycle;
  for (size_t i = 0; i < period; ++i) cycle.kinds.push_back(sequence.kinds[first + i]);
  if (part < 2) return cycle;
  // The longest stretch that repeats the part; a cycle may begin inside it.
  size_t stretch = 0;
  size_t longest_stretch = 0;
  for (size_t i = part; i < 2 * period; ++i) {
    stretch = cycle.kinds[i % period] == cycle.kinds[(i - part) % period] ? stretch + 1 : 0;
    longest_stretch = std::max(longest_stretch, stretch);
  }
  const size_t parts = longest_stretch / part + 1;
  if (parts >= 2 && parts <= kMostParts) cycle.parts = parts;
  return cycle;
}

// The calls after a pause that is longer than `border`.
std::vector<size_t> AfterPauses(const Sequence& sequence, double border) {
  std::vector<size_t> marks;
  for (size_t i = 1; i < sequence.kinds.size(); ++i) {
    if (sequence.pauses[i] > border) marks.push_back(i);
  }
  return marks;
}

// Calls after long pauses at one distance from each other. Hiccups of the machine are long pauses
// too, and stand anywhere between them.
struct Regularity {
  size_t distance = 0;
  double share = 0;    // of these calls that have another one at this distance
  double covered = 0;  // of all calls: those from one to the next
};

Regularity RegularityAt(const std::vector<bool>& marked, const std::vector<size_t>& marks,
                        size_t distance) {
  const size_t calls = marked.size();
  std::vector<size_t> members;
  for (const size_t mark : marks) {
    const bool after = mark >= distance && marked[mark - distance];
    if (after || (mark + distance < calls && marked[mark + distance])) members.push_back(mark);
  }
  // Where iterations of half this length begin without a long pause now and then, others stand in
  // between.
  size_t pairs = 0;
  for (size_t i = 1; i < members.size(); ++i) pairs += members[i] - members[i - 1] == distance;
  Regularity found;
  if (pairs < kRepetitions) return found;
  found.distance = distance;
  found.share = static_cast<double>(members.size()) / static_cast<double>(marks.size());
  found.covered = static_cast<double>(pairs * distance) / static_cast<double>(calls);
  return found;
}

// The shortest of the distances that most of these calls have.
Regularity RegularityOf(const std::vector<size_t>& marks, size_t calls) {
  std::map<size_t, size_t> distances;
  for (size_t i = 0; i < marks.size(); ++i) {
    for (size_t k = 1; k <= kMostHiccups + 1 && i + k < marks.size(); ++k) {
      ++distances[marks[i + k] - marks[i]];
    }
  }
  size_t most = 0;
  for (const auto& [distance, count] : distances) most = std::max(most, count);
  std::vector<bool> marked(calls, false);
  for (const size_t mark : marks) marked[mark] = true;
  for (const auto& [distance, count] : distances) {
    if (10 * count < 9 * most || distance < 2) continue;
    return RegularityAt(marked, marks, distance);
  }
  return {};
}

// Where sorted pauses rise most: borders between short and long ones. A few hiccups of the machine
// are longer than all others, so that the largest rise is not always the one that is meant.
std::vector<double> BordersOf(const Sequence& sequence) {
  std::vector<double> sorted(sequence.pauses.begin() + 1, sequence.pauses.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::pair<double, double>> rises;  // and borders
  // At most every second call comes after a long pause, and at least one in a thousand.
  const size_t last = sorted.size() - std::max<size_t>(sorted.size() / 1024, 3);
  for (size_t i = sorted.size() / 2; i < last; ++i) {
    const double rise = sorted[i + 1] / std::max(sorted[i], 1e-9);
    if (rise > kLeastRise) rises.emplace_back(rise, (sorted[i + 1] + sorted[i]) / 2);
  }
  std::sort(rises.rbegin(), rises.rend());
  if (rises.size() > kMostBorders) rises.resize(kMostBorders);
  std::vector<double> borders;
  for (const auto& [rise, border] : rises) borders.push_back(border);
  return borders;
}

// Whether the first tells iterations better than the second. Both may be regular: layers have
// pauses of their own inside an iteration, and every tenth iteration may have a longer one.
bool Better(const Regularity& one, const Regularity& other) {
  const double score = one.share * one.covered;
  const double against = other.share * other.covered;
  const bool alike = std::max(score, against) < kAsRegular * std::min(score, against);
  if (!alike || one.distance == other.distance) return score > against;
  const size_t shorter = std::min(one.distance, other.distance);
  const size_t longer = std::max(one.distance, other.distance);
  const bool layers = shorter < kShortestIteration || longer / shorter <= kMostParts;
  return one.distance == (longer % shorter == 0 && layers ? longer : shorter);
}

// Marks the calls after long pauses at equal distances; false if there are none.
bool MarkPauses(Sequence* sequence) {
  const size_t calls = sequence->kinds.size();
  std::vector<double> shorter(sequence->pauses.begin() + 1, sequence->pauses.end());
  const double usual = Median(std::move(shorter));
  std::vector<bool> marked;
  Regularity best;
  for (const double border : BordersOf(*sequence)) {
    if (border < kLongPause * usual) continue;
    const std::vector<size_t> some = AfterPauses(*sequence, border);
    if (some.size() <= kRepetitions) continue;
    const Regularity regularity = RegularityOf(some, calls);
    if (regularity.share < kRegular || regularity.covered < kLeastShare) continue;
    if (!Better(regularity, best)) continue;
    best = regularity;
    marked.assign(calls, false);
    for (const size_t mark : some) marked[mark] = true;
  }
  if (best.distance == 0) return false;
  const auto at = [&](size_t mark) { return mark < calls && marked[mark]; };
  // An iteration that began without a long pause stands between two that did not.
  for (size_t i = best.distance; i + best.distance < calls; ++i) {
    if (at(i - best.distance) && at(i + best.distance)) marked[i] = true;
  }
  for (size_t i = 0; i < calls; ++i) {
    // Hiccups are at other distances.
    if (!marked[i]) continue;
    const bool after = i >= best.distance && marked[i - best.distance];
    if (after || at(i + best.distance)) sequence->kinds[i] ^= kAfterPause;
  }
  return true;
}

bool IsSubsequence(const std::vector<uint64_t>& part, const uint64_t* first, const uint64_t* last) {
  for (const uint64_t kind : part) {
    first = std::find(first, last, kind);
    if (first == last) return false;
    ++first;
  }
  return true;
}

// Whether calls are alike, alone or layer by layer: nothing longer explains notably more of them.
bool AreAlike(const std::vector<Period>& periods) {
  if (periods.empty() || periods[0].length >= 2 * kShortestIteration) return false;
  return static_cast<double>(periods[0].explained) >=
         kAlike * static_cast<double>(periods.back().explained);
}

}  // namespace

Cycle FindCycle(Sequence* sequence) {
  if (sequence->kinds.size() < 2 * kRepetitions) return {};
  std::vector<Period> periods = Periods(sequence->kinds);
  if (AreAlike(periods)) {
    Sequence marked = *sequence;
    if (MarkPauses(&marked)) {
      const std::vector<Period> longer = Periods(marked.kinds);
      if (!longer.empty() && longer.back().length > periods[0].length) {
        *sequence = std::move(marked);
        return CycleOf(*sequence, longer.back().length, 0);
      }
    }
  }
  if (periods.empty() || periods.back().length < 2) return {};
  size_t chosen = periods.size() - 1;
  for (size_t i = 0; i < chosen; ++i) {
    if (PartsAreIterations(*sequence, periods[chosen].length, periods[i].length)) {
      chosen = i;
      break;
    }
  }
  return CycleOf(*sequence, periods[chosen].length, chosen == 0 ? 0 : periods[chosen - 1].length);
}

std::vector<Piece> FindPieces(const Sequence& sequence, const Cycle& cycle) {
  const size_t period = cycle.kinds.size();
  std::vector<Piece> pieces;
  if (period == 0) return pieces;
  const std::vector<uint64_t>& kinds = sequence.kinds;
  const auto at = [&](size_t first) {
    return first + period <= kinds.size() &&
           std::equal(cycle.kinds.begin(), cycle.kinds.end(),
                      kinds.begin() + static_cast<std::ptrdiff_t>(first));
  };
  for (size_t i = 0; i + period <= kinds.size();) {
    if (!at(i)) {
      ++i;
      continue;
    }
    if (!pieces.empty()) {
      // What stands between two repetitions: a few calls of the iteration before, a whole iteration
      // that has calls of its own, or something else.
      Piece& before = pieces.back();
      const size_t between = i - before.end;
      if (between <= std::max<size_t>(period / 2, 1)) {
        before.end = i;
        before.extra = between;
        before.followed = true;
      } else if (between >= period && between <= period + std::max<size_t>(period / 2, 1) &&
                 IsSubsequence(cycle.kinds, &kinds[before.end], &kinds[i])) {
        before.followed = true;
        pieces.push_back({before.end, i, between - period, true});
      }
    }
    pieces.push_back({i, i + period, 0, false});
    i += period;
  }
  return pieces;
}

}  // namespace diapason::job_profile
