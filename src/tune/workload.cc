#include "tune/workload.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "domain/collectives.h"

namespace diapason::tune {
namespace {

constexpr size_t kMostBuckets = 64;

bool CanBeBucket(Operation operation) {
  return CollectiveOf(operation).has_value() && !HasRoot(operation);
}

// A step of these calls, evenly over its compute.
Result<measure::IterationSpec> Spread(const std::vector<std::pair<Operation, uint64_t>>& calls) {
  measure::IterationSpec spec;
  spec.preset = "recorded";
  spec.chunks = static_cast<int>(calls.size()) + 1;
  for (size_t i = 0; i < calls.size(); ++i) {
    const int after = static_cast<int>(i) + 1;
    spec.buckets.push_back({calls[i].first, calls[i].second, 0, after, spec.chunks, {}});
  }
  RETURN_IF_ERROR(measure::CheckSpec(spec));
  return spec;
}

}  // namespace

Mix MakeMix(std::vector<MixEntry> entries, size_t most, const measure::Subject& subject) {
  std::map<std::pair<Operation, uint64_t>, uint64_t> sums;
  Mix mix;
  for (const MixEntry& entry : entries) {
    if (entry.bytes == 0 || entry.calls == 0) continue;
    sums[{entry.operation, entry.bytes}] += entry.calls;
    mix.calls += entry.calls;
  }
  const auto cost = [&](const MixEntry& entry) {
    measure::Trial trial;
    trial.operation = entry.operation;
    trial.bytes = entry.bytes;
    return static_cast<double>(entry.calls) * search::GuessSeconds(trial, subject);
  };
  double all = 0;
  for (const auto& [kind, calls] : sums) {
    mix.entries.push_back({kind.first, kind.second, calls});
    all += cost(mix.entries.back());
  }
  std::stable_sort(mix.entries.begin(), mix.entries.end(),
                   [&](const MixEntry& a, const MixEntry& b) { return cost(a) > cost(b); });
  if (mix.entries.size() > most) mix.entries.resize(most);
  double kept = 0;
  for (const MixEntry& entry : mix.entries) kept += cost(entry);
  mix.covered = all > 0 ? kept / all : 1;
  return mix;
}

Result<std::vector<search::CallCase>> MixCallCases(const Mix& mix, const search::SweepPlan& plan,
                                                   const measure::Subject& subject) {
  std::map<Operation, std::set<uint64_t>> sizes;
  for (const MixEntry& entry : mix.entries) sizes[entry.operation].insert(entry.bytes);
  std::vector<search::CallCase> call_cases;
  for (const auto& [operation, of_it] : sizes) {
    search::SweepPlan part = plan;
    part.operations = {operation};
    part.sizes.assign(of_it.begin(), of_it.end());
    ASSIGN_OR_RETURN(std::vector<search::CallCase> made, search::MakeCallCases(part, subject));
    for (search::CallCase& call_case : made) call_cases.push_back(std::move(call_case));
  }
  if (call_cases.empty()) return Invalid("the recorded calls have none that can be measured");
  return call_cases;
}

Result<measure::IterationSpec> StepIteration(const RecordedStep& step) {
  std::vector<TimedCall> calls;
  for (const TimedCall& call : step.calls) {
    if (CanBeBucket(call.operation)) calls.push_back(call);
  }
  if (calls.empty()) return Invalid("none of the recorded calls can be part of an iteration");
  const size_t every = (calls.size() + kMostBuckets - 1) / kMostBuckets;
  std::vector<std::pair<Operation, uint64_t>> order;
  for (size_t i = 0; i < calls.size(); i += every) {
    order.emplace_back(calls[i].operation, calls[i].bytes);
  }
  return Spread(order);
}

Result<measure::IterationSpec> MixIteration(const Mix& mix) {
  std::vector<MixEntry> entries;
  uint64_t rarest = UINT64_MAX;
  uint64_t most = 0;
  for (const MixEntry& entry : mix.entries) {
    if (CanBeBucket(entry.operation)) most = std::max(most, entry.calls);
  }
  for (const MixEntry& entry : mix.entries) {
    if (!CanBeBucket(entry.operation) || entry.calls * kMostBuckets < most) continue;
    entries.push_back(entry);
    rarest = std::min(rarest, entry.calls);
  }
  if (entries.empty()) return Invalid("none of the recorded calls can be part of an iteration");
  std::vector<uint64_t> counts;
  uint64_t total = 0;
  for (const MixEntry& entry : entries) {
    counts.push_back(std::max<uint64_t>(
        1, static_cast<uint64_t>(
               std::llround(static_cast<double>(entry.calls) / static_cast<double>(rarest)))));
    total += counts.back();
  }
  if (total > kMostBuckets) {
    // The rarest are a small part of it then: everything shrinks alike, to at least one.
    const double shrink = static_cast<double>(kMostBuckets) / static_cast<double>(total);
    total = 0;
    for (uint64_t& count : counts) {
      count = std::max<uint64_t>(
          1, static_cast<uint64_t>(std::floor(static_cast<double>(count) * shrink)));
      total += count;
    }
  }
  // Kinds take turns, as layers do: each at its own even distance.
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < entries.size(); ++i) {
    for (uint64_t n = 0; n < counts[i]; ++n) {
      order.emplace_back((static_cast<double>(n) + 0.5) / static_cast<double>(counts[i]), i);
    }
  }
  std::stable_sort(order.begin(), order.end());
  std::vector<std::pair<Operation, uint64_t>> calls;
  for (const auto& [place, entry] : order) {
    calls.emplace_back(entries[entry].operation, entries[entry].bytes);
  }
  return Spread(calls);
}

Result<std::vector<search::CallCase>> IterationCallCases(const measure::IterationSpec& spec,
                                                         const search::SweepPlan& plan,
                                                         const measure::Subject& subject) {
  measure::IterationSpec plain = spec;
  std::set<std::pair<Operation, uint64_t>> kinds;
  for (measure::Bucket& bucket : plain.buckets) {
    bucket.config = {};
    kinds.insert({bucket.operation, bucket.bytes});
  }
  const std::string workload = measure::EncodeSpec(plain);
  std::vector<search::CallCase> call_cases;
  for (const auto& [operation, bytes] : kinds) {
    search::SweepPlan part = plan;
    part.operations = {operation};
    part.sizes = {bytes};
    part.type = spec.type;
    ASSIGN_OR_RETURN(std::vector<search::CallCase> made, search::MakeCallCases(part, subject));
    for (search::CallCase& call_case : made) {
      // Nothing to choose (all-to-all): it is part of every step anyway.
      if (call_case.candidates.size() < 2) continue;
      call_case.trial.workload = workload;
      call_cases.push_back(std::move(call_case));
    }
  }
  if (call_cases.empty()) {
    return Invalid("the library offers no choice for any collective of this iteration");
  }
  return call_cases;
}

}  // namespace diapason::tune
