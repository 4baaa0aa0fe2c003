#include "search/replay.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "base/random.h"
#include "base/text.h"
#include "base/units.h"

namespace diapason::search {
namespace {

using dataset::Point;
using dataset::Sample;
using dataset::SampleOutcome;
using dataset::StoredSample;

// Whether a record is of this subject. Iterations are not replayed: they are not single calls.
bool IsOf(const dataset::StoreContents& contents, const StoredSample& record,
          const measure::Subject& subject) {
  if (record.run >= contents.runs.size()) return false;
  const Point& point = record.sample.point;
  if (point.kind != Point::Kind::kCollective) return false;
  if (point.nodes != subject.nodes || point.ranks != subject.ranks) return false;
  const dataset::MachineInfo& machine = contents.runs[record.run].machine;
  if (machine.simulated != subject.simulated) return false;
  const Result<Library> library = ParseLibrary(machine.library);
  return library.ok() && library.value() == subject.library;
}

std::string Describe(const Point& point) {
  return point.collective + ", " + FormatBytes(point.bytes) + ", " + point.ConfigText();
}

Result<measure::Trial> TrialOfSample(const Sample& sample, Library library) {
  Result<measure::Trial> trial = measure::TrialOf(sample.point, library);
  if (!trial.ok()) return trial.status().WithContext(Describe(sample.point));
  return trial;
}

// Outside a sample's own point, what has to be equal for candidates to compete.
auto ContextKey(const measure::Trial& trial) {
  return std::tuple(trial.operation, trial.type, trial.reduce, trial.root, trial.in_place,
                    trial.bytes);
}
// The default is the smallest.
auto ContenderKey(const Candidate& candidate) {
  const Config& config = candidate.config;
  const bool own = !config.IsDefault() || !candidate.environment.empty();
  return std::tuple(own, candidate.environment, config.algorithm, config.protocol,
                    config.segment_bytes, config.channels);
}

}  // namespace

Result<std::unique_ptr<ReplayMeasurer>> ReplayMeasurer::Create(
    const dataset::StoreContents& contents, const measure::Subject& subject,
    const ReplayOptions& options) {
  measure::Subject replayed = subject;
  replayed.backend = "replay";
  // The constructor is private.
  std::unique_ptr<ReplayMeasurer> replay(
      new ReplayMeasurer(std::move(replayed), options.wrap));  // NOLINT
  for (const StoredSample& record : contents.records) {
    if (!IsOf(contents, record, subject)) continue;
    const Sample& sample = record.sample;
    if (sample.outcome == SampleOutcome::kFine &&
        !(std::isfinite(sample.seconds) && sample.seconds > 0)) {
      return Invalid(Format("{}, round {}: {:g} s is not a time", Describe(sample.point),
                            sample.round, sample.seconds));
    }
    if (options.allowed && !options.allowed(sample)) continue;
    ASSIGN_OR_RETURN(const measure::Trial trial, TrialOfSample(sample, subject.library));
    // In the words that a trial is going to be looked up with.
    replay->shelves_[measure::PointOf(trial, replay->subject_)].samples.push_back(sample);
    ++replay->held_;
  }
  uint64_t stream = 0;
  for (auto& [point, shelf] : replay->shelves_) {
    std::vector<Sample>& samples = shelf.samples;
    std::stable_sort(samples.begin(), samples.end(),
                     [](const Sample& a, const Sample& b) { return a.round < b.round; });
    if (options.shuffle == 0) continue;
    const CounterRandom random(options.shuffle, stream++);
    for (size_t i = samples.size(); i > 1; --i) {
      std::swap(samples[i - 1], samples[random.Bits(i) % i]);
    }
  }
  return replay;
}

Result<measure::Measurement> ReplayMeasurer::Measure(const measure::Trial& trial) {
  const Point point = measure::PointOf(trial, subject_);
  const auto shelf = shelves_.find(point);
  if (shelf == shelves_.end()) {
    return NotFound("the dataset has no sample of " + Describe(point));
  }
  const std::vector<Sample>& samples = shelf->second.samples;
  if (shelf->second.next == samples.size()) {
    if (!wrap_) {
      return NotFound(Format("the dataset has no more than {} of {}",
                             Count(samples.size(), "sample"), Describe(point)));
    }
    shelf->second.next = 0;
  }
  const Sample& sample = samples[shelf->second.next++];
  ++served_;
  measure::Measurement measurement;
  measurement.outcome = sample.outcome;
  measurement.iterations = static_cast<int>(std::clamp<int64_t>(sample.iterations, 0, INT32_MAX));
  measurement.wrong = sample.wrong;
  measurement.note = sample.note;
  if (sample.outcome == SampleOutcome::kFine) {
    measurement.seconds = measurement.fastest = sample.seconds;
  }
  // What a failure took is sometimes known too.
  if (std::isfinite(sample.seconds) && sample.seconds > 0) {
    now_ += sample.seconds * std::max(1, measurement.iterations);
  }
  return measurement;
}

std::vector<measure::Subject> SubjectsIn(const dataset::StoreContents& contents) {
  std::vector<measure::Subject> subjects;
  std::set<std::tuple<Library, bool, int, int>> seen;
  for (const StoredSample& record : contents.records) {
    if (record.run >= contents.runs.size()) continue;
    const dataset::MachineInfo& machine = contents.runs[record.run].machine;
    const Result<Library> library = ParseLibrary(machine.library);
    const Point& point = record.sample.point;
    if (!library.ok() || point.kind != Point::Kind::kCollective) continue;
    if (!seen.emplace(library.value(), machine.simulated, point.nodes, point.ranks).second)
      continue;
    measure::Subject subject;
    subject.backend = "replay";
    subject.library = library.value();
    subject.ranks = point.ranks;
    subject.nodes = point.nodes;
    subject.simulated = machine.simulated;
    subject.machine = machine;
    subject.description = Format("replayed: {}, {} ranks on {}", machine.library, point.ranks,
                                 Count(static_cast<size_t>(point.nodes), "node"));
    subjects.push_back(std::move(subject));
  }
  std::sort(subjects.begin(), subjects.end(),
            [](const measure::Subject& a, const measure::Subject& b) {
              return std::tuple(a.library, a.simulated, a.nodes, a.ranks) <
                     std::tuple(b.library, b.simulated, b.nodes, b.ranks);
            });
  return subjects;
}

Result<CallCasesFound> CallCasesIn(const dataset::StoreContents& contents,
                                   const measure::Subject& subject) {
  using Key = decltype(ContextKey(std::declval<measure::Trial>()));
  std::map<Key, CallCase> contexts;
  for (const StoredSample& record : contents.records) {
    if (!IsOf(contents, record, subject)) continue;
    ASSIGN_OR_RETURN(const measure::Trial trial, TrialOfSample(record.sample, subject.library));
    CallCase& call_case = contexts[ContextKey(trial)];
    const Candidate candidate = {trial.config, trial.environment};
    call_case.trial = trial;
    call_case.trial.config = {};
    call_case.trial.environment.clear();
    call_case.candidates.push_back(candidate);
  }
  CallCasesFound found;
  for (auto& [key, call_case] : contexts) {
    std::vector<Candidate>& all = call_case.candidates;
    std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
      return ContenderKey(a) < ContenderKey(b);
    });
    all.erase(std::unique(all.begin(), all.end()), all.end());
    const bool has_default = all.front().config.IsDefault() && all.front().environment.empty();
    if (has_default) {
      found.call_cases.push_back(std::move(call_case));
    } else {
      found.left_out.push_back(measure::CollectiveText(call_case.trial.operation) + ", " +
                               FormatBytes(call_case.trial.bytes) +
                               ": the library default was never measured");
    }
  }
  return found;
}

}  // namespace diapason::search
