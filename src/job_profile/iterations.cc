#include "job_profile/iterations.h"

#include <algorithm>
#include <map>

#include "base/random.h"
#include "base/stats.h"
#include "domain/schedule.h"
#include "job_profile/cycle.h"

namespace diapason::job_profile {
namespace {

constexpr size_t kMostCalls = size_t{1} << 17;  // that are searched, the newest
constexpr size_t kMostSpans = 256;              // iterations whose collectives are looked at
constexpr size_t kMostPositions = size_t{1} << 14;
constexpr size_t kLeastIterations = 3;
constexpr double kLeastCovered = 0.5;  // of the calls that are searched
constexpr double kAllAlike = 0.95;     // of the calls
constexpr double kUsualCalls = 1.5;    // an iteration with so many times the usual calls has others
constexpr double kLongestIteration = 86400;

// How calls are told apart.
enum class Detail { kBytes, kBand, kCollective };

uint64_t KindOf(const Call& call, Detail detail) {
  const uint64_t size = detail == Detail::kBytes  ? call.bytes
                        : detail == Detail::kBand ? static_cast<uint64_t>(SizeBand(call.bytes))
                                                  : 0;
  return MixBits(MixBits(call.role << 8 | call.collective) ^ size);
}

// Whether most of the calls are timed, so that the GPU's clock can be used.
bool MostTimed(const std::vector<Call>& calls) {
  const auto timed =
      std::count_if(calls.begin(), calls.end(), [](const Call& call) { return call.timed(); });
  return static_cast<size_t>(timed) * 2 > calls.size();
}

// When a call began, in seconds from the first.
double TimeOf(const Timeline& timeline, size_t call, bool gpu) {
  const auto from = [](uint64_t now, uint64_t base) {
    return static_cast<double>(static_cast<int64_t>(now - base)) * 1e-9;
  };
  if (!gpu) return from(timeline.calls[call].host_ns, timeline.calls[0].host_ns);
  const auto base = std::find_if(timeline.calls.begin(), timeline.calls.end(),
                                 [](const Call& one) { return one.timed(); });
  return from(timeline.calls[call].start_ns, base->start_ns);
}

void AddTimed(const Timeline& timeline, size_t first, size_t end, RankIterations* found) {
  const bool gpu = found->gpu_clock;
  if (end >= timeline.calls.size()) return;
  if (gpu && !(timeline.calls[first].timed() && timeline.calls[end].timed())) return;
  const double length = TimeOf(timeline, end, gpu) - TimeOf(timeline, first, gpu);
  if (length > 0 && length < kLongestIteration) {
    found->timed.push_back({first, end, length, timeline.calls[first].host_ns});
  }
}

// From step to step, whatever calls there are. `first`: the first call after each step.
void AddBetweenSteps(const Timeline& timeline, const std::vector<size_t>& first,
                     RankIterations* found) {
  found->source = Source::kSteps;
  found->gpu_clock = false;
  found->startup_calls = first.front();
  found->other_calls = timeline.calls.size() - first.back();
  for (size_t i = 0; i + 1 < first.size(); ++i) {
    const double length = static_cast<double>(timeline.steps[i + 1] - timeline.steps[i]) * 1e-9;
    if (length > 0 && length < kLongestIteration) {
      found->timed.push_back({first[i], first[i + 1], length, timeline.steps[i]});
    }
  }
}

bool BySteps(const Timeline& timeline, RankIterations* found) {
  if (timeline.steps.size() <= kLeastIterations) return false;
  // The first call after each step.
  std::vector<size_t> first;
  for (const uint64_t step : timeline.steps) {
    const auto at =
        std::upper_bound(timeline.calls.begin(), timeline.calls.end(), step,
                         [](uint64_t time, const Call& call) { return time < call.host_ns; });
    first.push_back(static_cast<size_t>(at - timeline.calls.begin()));
  }
  std::map<size_t, size_t> counts;
  size_t without = 0;
  for (size_t i = 0; i + 1 < first.size(); ++i) {
    if (first[i + 1] > first[i]) {
      ++counts[first[i + 1] - first[i]];
    } else {
      ++without;
    }
  }
  if (2 * without > first.size()) {
    AddBetweenSteps(timeline, first, found);
    return true;
  }
  if (counts.empty()) return false;
  const size_t usual =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      })->first;
  found->source = Source::kSteps;
  found->startup_calls = first.front();
  found->other_calls = timeline.calls.size() - first.back();
  for (size_t i = 0; i + 1 < first.size(); ++i) {
    const size_t calls = first[i + 1] - first[i];
    if (static_cast<double>(calls) > kUsualCalls * static_cast<double>(usual)) {
      found->other_calls += calls - usual;
    } else if (calls > 0) {
      AddTimed(timeline, first[i], first[i + 1], found);
    }
  }
  return true;
}

// The calls in `chosen` as a sequence.
Sequence SequenceOf(const Timeline& timeline, const std::vector<size_t>& chosen, bool gpu,
                    Detail detail) {
  Sequence sequence;
  double free = 0;  // the end of everything before
  for (size_t i = 0; i < chosen.size(); ++i) {
    const Call& call = timeline.calls[chosen[i]];
    sequence.kinds.push_back(KindOf(call, detail));
    const bool timed = gpu && call.timed();
    const double start = timed ? TimeOf(timeline, chosen[i], true)
                         : gpu ? free
                               : TimeOf(timeline, chosen[i], false);
    sequence.pauses.push_back(i == 0 ? 0 : std::max(0.0, start - free));
    free = std::max(free, start + (timed ? call.seconds() : 0));
  }
  return sequence;
}

bool ByOrder(const Timeline& timeline, const std::vector<size_t>& chosen, Detail detail,
             RankIterations* found) {
  Sequence sequence = SequenceOf(timeline, chosen, found->gpu_clock, detail);
  const Cycle cycle = FindCycle(&sequence);
  const std::vector<Piece> pieces = FindPieces(sequence, cycle);
  size_t covered = 0;
  size_t followed = 0;
  for (const Piece& piece : pieces) {
    covered += piece.end - piece.first;
    followed += piece.followed ? 1 : 0;
  }
  if (followed < kLeastIterations ||
      static_cast<double>(covered) < kLeastCovered * static_cast<double>(chosen.size())) {
    return false;
  }
  found->source = Source::kOrder;
  found->parts = cycle.parts;
  found->startup_calls = chosen[pieces.front().first];
  size_t inside = 0;
  for (const Piece& piece : pieces) {
    const size_t first = chosen[piece.first];
    const size_t end = piece.end < chosen.size() ? chosen[piece.end] : timeline.calls.size();
    inside += piece.followed ? end - first : chosen[piece.end - 1] + 1 - first;
    if (piece.followed) AddTimed(timeline, first, end, found);
  }
  found->other_calls = timeline.calls.size() - found->startup_calls - inside;
  return true;
}

// Calls that are all alike: many of them together, in the place of iterations.
bool ByCount(const Timeline& timeline, RankIterations* found) {
  std::map<uint64_t, size_t> counts;
  for (const uint64_t kind : found->kinds) ++counts[kind];
  const auto usual =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  const size_t calls = timeline.calls.size();
  if (usual == counts.end() ||
      static_cast<double>(usual->second) < kAllAlike * static_cast<double>(calls)) {
    return false;
  }
  const auto alike = [&](size_t call) { return found->kinds[call] == usual->first; };
  size_t first = 0;
  while (!alike(first)) ++first;
  found->startup_calls = first;
  size_t inside = 0;
  for (size_t i = first; i + kCallsTogether < calls;) {
    size_t end = i;
    while (end < i + kCallsTogether && alike(end)) ++end;
    if (end == i + kCallsTogether) {
      AddTimed(timeline, i, end, found);
      inside += kCallsTogether;
    }
    i = std::max(end, i + 1);
  }
  if (found->timed.size() < kLeastIterations) {
    found->timed.clear();
    found->startup_calls = 0;
    return false;
  }
  found->source = Source::kCalls;
  found->other_calls = calls - first - inside;
  return true;
}

}  // namespace

std::vector<uint64_t> KindsBySize(const Timeline& timeline) {
  std::vector<uint64_t> kinds;
  for (const Call& call : timeline.calls) kinds.push_back(KindOf(call, Detail::kBytes));
  return kinds;
}

RankIterations FindIterations(const Timeline& timeline) {
  RankIterations found;
  found.gpu_clock = MostTimed(timeline.calls);
  const auto note_kinds = [&](Detail detail) {
    found.kinds.clear();
    for (const Call& call : timeline.calls) found.kinds.push_back(KindOf(call, detail));
  };
  note_kinds(Detail::kBytes);
  if (BySteps(timeline, &found) && found.timed.size() >= kLeastIterations) return found;
  found = {};
  found.gpu_clock = MostTimed(timeline.calls);
  // All calls together; where threads of the program interleave differently every time, those of
  // one communicator.
  const size_t skipped =
      timeline.calls.size() > kMostCalls ? timeline.calls.size() - kMostCalls : 0;
  std::map<size_t, std::vector<size_t>> by_role;
  std::vector<size_t> all;
  for (size_t i = skipped; i < timeline.calls.size(); ++i) {
    all.push_back(i);
    by_role[timeline.calls[i].role].push_back(i);
  }
  std::vector<const std::vector<size_t>*> choices{&all};
  if (by_role.size() > 1) {
    for (const auto& [role, calls] : by_role) choices.push_back(&calls);
    std::stable_sort(choices.begin() + 1, choices.end(),
                     [](const auto* a, const auto* b) { return a->size() > b->size(); });
  }
  for (const Detail detail : {Detail::kBytes, Detail::kBand, Detail::kCollective}) {
    note_kinds(detail);
    for (const std::vector<size_t>* chosen : choices) {
      if (ByOrder(timeline, *chosen, detail, &found)) return found;
    }
  }
  note_kinds(Detail::kBytes);
  ByCount(timeline, &found);
  return found;
}

size_t AfterCapture(const Timeline& timeline, const RankIterations& found) {
  return static_cast<size_t>(
      std::count_if(found.timed.begin(), found.timed.end(),
                    [&](const RankIteration& one) { return one.begin > timeline.last_capture; }));
}

PositionSpans SpansOf(const Timeline& timeline, const RankIterations& found) {
  PositionSpans result;
  // The host's clock on the GPU's: a kernel never starts before its launch.
  int64_t offset = INT64_MAX;
  for (const Call& call : timeline.calls) {
    if (call.timed()) offset = std::min(offset, static_cast<int64_t>(call.start_ns - call.host_ns));
  }
  std::map<std::pair<uint64_t, size_t>, size_t> positions;
  std::vector<std::vector<double>> waiting;
  const size_t skipped = found.timed.size() > kMostSpans ? found.timed.size() - kMostSpans : 0;
  for (size_t i = skipped; i < found.timed.size(); ++i) {
    const RankIteration& iteration = found.timed[i];
    const auto timed =
        std::find_if(timeline.calls.begin() + static_cast<std::ptrdiff_t>(iteration.first),
                     timeline.calls.begin() + static_cast<std::ptrdiff_t>(iteration.end),
                     [](const Call& call) { return call.timed(); });
    if (timed == timeline.calls.begin() + static_cast<std::ptrdiff_t>(iteration.end)) continue;
    const uint64_t base = timed->start_ns;
    const auto relative = [base](uint64_t time) {
      return static_cast<double>(static_cast<int64_t>(time - base)) * 1e-9;
    };
    IterationSpans spans;
    spans.length = iteration.length;
    std::map<uint64_t, size_t> seen;
    for (size_t c = iteration.first; c < iteration.end; ++c) {
      const Call& call = timeline.calls[c];
      if (!call.timed()) continue;
      const auto [at, fresh] =
          positions.emplace(std::pair(found.kinds[c], seen[found.kinds[c]]++), positions.size());
      if (fresh && positions.size() > kMostPositions) {
        positions.erase(at);
        continue;
      }
      if (fresh) {
        result.examples.push_back(&call);
        waiting.emplace_back();
      }
      spans.spans.push_back({at->second, call.role, relative(call.start_ns), relative(call.stop_ns),
                             relative(call.host_ns + static_cast<uint64_t>(offset))});
      if (call.quickest > 0) waiting[at->second].push_back(1 - call.quickest / call.seconds());
    }
    result.iterations.push_back(std::move(spans));
  }
  for (std::vector<double>& shares : waiting) {
    result.waiting.push_back(shares.empty() ? 0 : Mean(shares));
  }
  return result;
}

}  // namespace diapason::job_profile
