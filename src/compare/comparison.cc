#include "compare/comparison.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

#include "base/interval_text.h"
#include "base/text.h"

namespace diapason::compare {
namespace {

using dataset::MachineInfo;
using dataset::Point;

std::string WhyNot(const Change& change) {
  if (!change.has_interval()) {
    return change.old_samples + change.new_samples == 2
               ? "one value on each side: no spread is known"
               : "one launch on each side, with too few samples for an interval";
  }
  if (change.assumed) {
    return "one launch on each side: how launches differ is assumed, not measured";
  }
  return "the launches differ too much";
}

Verdict VerdictOf(const Change& change, double p, const CompareOptions& options) {
  if (!change.has_interval()) return Verdict::kCannotTell;
  if (change.low() >= -options.threshold && change.high() <= options.threshold) {
    return Verdict::kSame;
  }
  if (p >= options.alpha) return Verdict::kCannotTell;
  return change.log_change > 0 ? Verdict::kSlower : Verdict::kFaster;
}

std::string JoinSet(const std::set<std::string>& words) {
  return Join({words.begin(), words.end()}, ", ");
}

void Judge(const CompareOptions& options, std::vector<CallComparison>* calls) {
  std::vector<double> changed;
  std::vector<double> failing;
  for (const CallComparison& one : *calls) {
    changed.push_back(one.change.PValue());
    failing.push_back(one.change.PValueAbove(options.fail_on.value_or(0)));
  }
  changed = HolmAdjusted(changed);
  failing = HolmAdjusted(failing);
  for (size_t i = 0; i < calls->size(); ++i) {
    CallComparison& one = (*calls)[i];
    one.p = changed[i];
    one.fails = options.fail_on.has_value() && failing[i] < options.alpha;
    one.verdict = one.fails ? Verdict::kSlower : VerdictOf(one.change, one.p, options);
    if (one.verdict == Verdict::kCannotTell) one.why = WhyNot(one.change);
  }
}

// By launches: the mean logarithm of the calls that all of them have.
void SetOverall(const Side& before, const Side& after, Comparison* comparison) {
  const size_t olds = before.launches.size();
  const size_t news = after.launches.size();
  std::vector<const CallOfSide*> of_old;
  std::vector<const CallOfSide*> of_new;
  double sum = 0;
  for (const CallComparison& one : comparison->calls) {
    sum += one.change.log_change;
    const CallOfSide& first = before.calls.at(one.point);
    const CallOfSide& second = after.calls.at(one.point);
    if (first.figures.size() != olds || second.figures.size() != news) continue;
    of_old.push_back(&first);
    of_new.push_back(&second);
  }
  if (!comparison->calls.empty()) {
    comparison->geometric_mean = std::expm1(sum / static_cast<double>(comparison->calls.size()));
  }
  comparison->overall_calls = of_old.size();
  if (of_old.empty()) return;
  const auto mean_of = [](const std::vector<const CallOfSide*>& calls, size_t launch) {
    LaunchFigure mean = calls[0]->figures[launch];
    const auto count = static_cast<double>(calls.size());
    mean.log_seconds = 0;
    mean.variance = 0;
    for (const CallOfSide* call : calls) {
      const LaunchFigure& figure = call->figures[launch];
      mean.log_seconds += figure.log_seconds / count;
      mean.variance += figure.variance / count / count;
      mean.samples = std::min(mean.samples, figure.samples);
    }
    mean.least = mean.most = std::exp(mean.log_seconds);
    return mean;
  };
  std::vector<LaunchFigure> first;
  std::vector<LaunchFigure> second;
  for (size_t i = 0; i < olds; ++i) first.push_back(mean_of(of_old, i));
  for (size_t i = 0; i < news; ++i) second.push_back(mean_of(of_new, i));
  comparison->overall = EstimateChange(std::move(first), std::move(second));
  if (of_old.size() == comparison->calls.size()) {
    comparison->geometric_mean = comparison->overall->share();
  }
}

// The values of one property over the launches that say it.
std::string ValuesOf(const std::vector<Launch>& launches,
                     const std::function<std::string(const MachineInfo&)>& get) {
  std::set<std::string> values;
  for (const Launch& launch : launches) {
    if (std::string value = get(launch.machine); !value.empty()) values.insert(std::move(value));
  }
  return JoinSet(values);
}

std::vector<Difference> DifferencesOf(const Side& before, const Side& after) {
  std::vector<Difference> found;
  const auto compare = [&](const std::string& what, bool unset_counts,
                           const std::function<std::string(const MachineInfo&)>& get) {
    std::string first = ValuesOf(before.launches, get);
    std::string second = ValuesOf(after.launches, get);
    if (first == second || (!unset_counts && (first.empty() || second.empty()))) return;
    found.push_back({what, std::move(first), std::move(second)});
  };
  compare("library", false, [](const MachineInfo& m) { return m.library; });
  compare("library version", false, [](const MachineInfo& m) { return m.library_version; });
  compare("GPUs", false, [](const MachineInfo& m) { return m.gpu; });
  compare("driver", false, [](const MachineInfo& m) { return m.driver; });
  compare("hosts", false, [](const MachineInfo& m) { return m.hosts; });
  compare("topology", false, [](const MachineInfo& m) { return m.topology; });
  compare("measured by", false, [](const MachineInfo& m) { return m.tool; });
  compare("kind of measurement", false,
          [](const MachineInfo& m) { return m.simulated ? "simulated" : "real"; });
  std::set<std::string> names;
  bool recorded[2] = {false, false};
  for (const Side* side : {&before, &after}) {
    for (const Launch& launch : side->launches) {
      for (const auto& [name, value] : launch.machine.environment) {
        names.insert(name);
        recorded[side == &after ? 1 : 0] = true;
      }
      // What diapason measures records the environment, also where nothing is set.
      if (launch.machine.tool.starts_with("diapason")) recorded[side == &after ? 1 : 0] = true;
    }
  }
  if (!recorded[0] || !recorded[1]) return found;
  for (const std::string& name : names) {
    compare(name, true, [&name](const MachineInfo& machine) {
      const auto value = machine.environment.find(name);
      return value == machine.environment.end() ? std::string() : value->second;
    });
  }
  return found;
}

auto OrderOf(const Point& p) {
  return std::tie(p.collective, p.kind, p.nodes, p.ranks, p.type, p.reduce, p.root, p.in_place,
                  p.workload, p.bytes, p.algorithm, p.protocol, p.channels, p.segment_bytes,
                  p.environment);
}
bool Precedes(const Point& a, const Point& b) { return OrderOf(a) < OrderOf(b); }

}  // namespace

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kSlower:
      return "slower";
    case Verdict::kFaster:
      return "faster";
    case Verdict::kSame:
      return "same";
    case Verdict::kCannotTell:
      break;
  }
  return "cannot tell";
}

size_t Comparison::Count(Verdict verdict) const {
  return static_cast<size_t>(
      std::count_if(calls.begin(), calls.end(),
                    [&](const CallComparison& one) { return one.verdict == verdict; }));
}

size_t Comparison::Failing() const {
  return static_cast<size_t>(std::count_if(calls.begin(), calls.end(),
                                           [](const CallComparison& one) { return one.fails; }));
}

Verdict Comparison::Overall() const {
  if (Count(Verdict::kSlower) > 0) return Verdict::kSlower;
  if (Count(Verdict::kFaster) > 0) return Verdict::kFaster;
  const bool all = !calls.empty() && Count(Verdict::kSame) == calls.size();
  return all ? Verdict::kSame : Verdict::kCannotTell;
}

Comparison Compare(const Side& before, const Side& after, const CompareOptions& options) {
  Comparison result;
  result.old_name = before.name;
  result.new_name = after.name;
  result.old_launches = before.launches;
  result.new_launches = after.launches;
  result.options = options;
  for (const auto& [point, call] : before.calls) {
    if (call.figures.empty()) continue;
    const auto other = after.calls.find(point);
    if (other == after.calls.end() || other->second.figures.empty()) {
      result.only_old.push_back(point);
      continue;
    }
    CallComparison one;
    one.point = point;
    one.change = EstimateChange(call.figures, other->second.figures);
    one.ran_before = JoinSet(call.ran);
    one.ran_after = JoinSet(other->second.ran);
    result.calls.push_back(std::move(one));
  }
  for (const auto& [point, call] : after.calls) {
    const auto other = before.calls.find(point);
    if (call.figures.empty()) continue;
    if (other == before.calls.end() || other->second.figures.empty()) {
      result.only_new.push_back(point);
    }
  }
  std::sort(result.calls.begin(), result.calls.end(),
            [](const auto& a, const auto& b) { return Precedes(a.point, b.point); });
  std::sort(result.only_old.begin(), result.only_old.end(), Precedes);
  std::sort(result.only_new.begin(), result.only_new.end(), Precedes);
  Judge(options, &result.calls);
  SetOverall(before, after, &result);
  result.differences = DifferencesOf(before, after);
  for (const auto* notes : {&before.notes, &after.notes}) {
    result.notes.insert(result.notes.end(), notes->begin(), notes->end());
  }
  for (const std::string& run : before.runs) {
    if (!after.runs.contains(run)) continue;
    result.notes.push_back("run " + run + " is on both sides: it is compared with itself");
  }
  return result;
}

}  // namespace diapason::compare
