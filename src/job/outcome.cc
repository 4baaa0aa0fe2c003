#include "job/outcome.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>

#include "domain/schedule.h"
#include "journal/joined.h"
#include "journal/learning.h"
#include "policy/parse.h"

namespace diapason::job {
namespace {

using journal::JournalComm;
using journal::JournalContents;
using journal::JournalRecord;
using journal::RecordKind;

using ChoiceKey = std::tuple<Library, Collective, int, int, int>;
// A communicator of the job: id, nodes, ranks, how many of the same came before in its process.
using CommunicatorKey = std::tuple<uint64_t, int64_t, int64_t, size_t>;

class Gatherer {
 public:
  void Add(const JournalContents& contents) {
    std::map<CommunicatorKey, size_t> before;
    std::set<uint32_t> first;  // communicators that no journal before had
    for (const JournalComm& one : contents.communicators) {
      const CommunicatorKey same{one.id, one.shape.nodes, one.shape.ranks, 0};
      const CommunicatorKey key{one.id, one.shape.nodes, one.shape.ranks, before[same]++};
      if (known_.insert(key).second) first.insert(one.number);
      ranks_ = std::max(ranks_, one.shape.ranks);
      if (one.library_version != 0) outcome.library_version = one.library_version;
      outcome.library = one.library;
      static constexpr std::string_view kTogether[] = {"learn", "static", "compare", "tune"};
      const bool together =
          std::find(std::begin(kTogether), std::end(kTogether), one.agreed) != std::end(kTogether);
      if (!one.agreed.empty() && !together) {
        aside_.insert(one.agreed);
      }
    }
    outcome.communicators = known_.size();
    for (const JournalRecord& record : contents.records) {
      if (record.kind == RecordKind::kDecision && first.contains(record.communicator)) {
        AddDecision(contents, record);
      }
    }
    AddLearned(contents);
  }

  void Finish() {
    for (auto& [key, one] : chosen_) outcome.chosen.push_back(one);
    std::stable_sort(outcome.chosen.begin(), outcome.chosen.end(),
                     [](const ChosenConfig& a, const ChosenConfig& b) {
                       return std::make_tuple(a.config.IsDefault(), b.calls) <
                              std::make_tuple(b.config.IsDefault(), a.calls);
                     });
    std::stable_sort(outcome.learned.begin(), outcome.learned.end(),
                     [](const LearnedGain& a, const LearnedGain& b) { return a.gain > b.gain; });
    outcome.stood_aside.assign(aside_.begin(), aside_.end());
    outcome.agreement = Judge();
  }

  JobOutcome outcome;

 private:
  void AddDecision(const JournalContents& contents, const JournalRecord& record) {
    const JournalComm* communicator = contents.Find(record.communicator);
    if (communicator == nullptr || record.collective >= kCollectiveCount) return;
    const Config config = journal::AskedOf(record);
    const auto collective = static_cast<Collective>(record.collective);
    const ChoiceKey key{communicator->library, collective, config.algorithm, config.protocol,
                        config.channels};
    const int line = record.line;
    auto [at, is_new] =
        chosen_.try_emplace(key, ChosenConfig{communicator->library, collective, config,
                                              record.bytes, record.bytes, 0, line});
    ChosenConfig& one = at->second;
    one.least_bytes = std::min(one.least_bytes, record.bytes);
    one.most_bytes = std::max(one.most_bytes, record.bytes);
    if (one.line != line) one.line = 0;
    ++one.calls;
    ++outcome.calls;
  }

  // Rewards are in the journal of each communicator's rank 0, and may be in others.
  void AddLearned(const JournalContents& contents) {
    for (const journal::JournalContext& context : journal::LearningOf(contents)) {
      const JournalComm* communicator = contents.Find(context.communicator);
      if (communicator == nullptr) continue;
      LearnedGain gain;
      gain.library = communicator->library;
      gain.collective = context.collective;
      gain.communicator = communicator->name;
      gain.shape = communicator->shape;
      gain.bytes = BandLast(context.band);
      gain.iteration = context.iterations;
      bool measured = false;
      for (const journal::LearningArm& arm : context.arms) {
        measured = measured || arm.blocks > 0;
        if (arm.state != journal::LearningArm::State::kInUse) continue;
        gain.config = arm.config;
        gain.blocks = arm.blocks;
        gain.gain = arm.ratio > 0 ? 1 / arm.ratio : 0;
      }
      if (!measured) continue;
      if (learned_.insert({communicator->id, context.collective, context.band}).second) {
        outcome.learned.push_back(gain);
      }
    }
  }

  JobOutcome::Agreement Judge() const {
    using Agreement = JobOutcome::Agreement;
    const journal::JournalComparison::Report& report = outcome.report;
    if (outcome.communicators == 0) return Agreement::kUnknown;
    if (ranks_ == 1) return Agreement::kNotNeeded;
    if (report.compared == 0 || (report.calls == 0 && report.runs == 0)) return Agreement::kUnknown;
    if (!report.problems.empty()) return Agreement::kDiffered;
    return report.ranks < static_cast<size_t>(ranks_) || !outcome.unreadable.empty()
               ? Agreement::kPartly
               : Agreement::kAgreed;
  }

  std::set<CommunicatorKey> known_;
  std::map<ChoiceKey, ChosenConfig> chosen_;
  std::set<std::tuple<uint64_t, Collective, int>> learned_;
  std::set<std::string> aside_;
  int64_t ranks_ = 0;
};

}  // namespace

JobOutcome ReadOutcome(const std::vector<std::string>& journals, bool compares, size_t most_bytes) {
  Gatherer gatherer;
  job_profile::TurnComparer turns;
  journal::JournalComparison comparison;
  for (const std::string& file : journals) {
    const Result<JournalContents> contents =
        most_bytes > 0 ? journal::ReadJournalHead(file, most_bytes) : journal::ReadJournal(file);
    if (!contents.ok()) {
      gatherer.outcome.unreadable.push_back(contents.status().message());
      continue;
    }
    ++gatherer.outcome.journals;
    gatherer.outcome.cut += contents.value().ended ? 0 : 1;
    comparison.Add(file, contents.value());
    gatherer.Add(contents.value());
    if (compares) turns.Add(file, contents.value());
  }
  if (compares) gatherer.outcome.compared = turns.Finish();
  gatherer.outcome.report = comparison.Finish();
  gatherer.Finish();
  return std::move(gatherer.outcome);
}

void AddLearnedRows(const std::string& before, const std::string& after, JobOutcome* outcome) {
  policy::ParseOptions options;
  options.library = outcome->library;
  options.check_rows = false;
  const policy::ParseOutcome parsed = policy::ParsePolicy(after, options);
  if (parsed.errors > 0) return;
  for (const policy::Rule& rule : parsed.policy.rules) {
    double figure = 0;
    double low = 0;
    double high = 0;
    if (rule.remark.empty() || before.find(rule.remark) != std::string::npos ||
        std::sscanf(rule.remark.c_str(), " %lf x as fast as the default (%lf to %lf)", &figure,
                    &low, &high) != 3) {
      continue;
    }
    bool known = false;
    for (LearnedGain& gain : outcome->learned) {
      if (rule.collective != gain.collective || rule.max_bytes != gain.bytes ||
          !rule.MatchesShape(gain.shape)) {
        continue;
      }
      known = true;
      if (outcome->cut > 0) gain.config = rule.config;
      if (rule.config != gain.config) continue;
      gain.gain = figure;
      gain.low = low;
      gain.high = high;
    }
    if (known || outcome->cut == 0) continue;
    LearnedGain gain;
    gain.library = outcome->library;
    gain.collective = rule.collective;
    gain.bytes = rule.max_bytes;
    gain.shape = {rule.nodes, rule.ranks};
    gain.config = rule.config;
    gain.gain = figure;
    gain.low = low;
    gain.high = high;
    outcome->learned.push_back(std::move(gain));
  }
}

}  // namespace diapason::job
