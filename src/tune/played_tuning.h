#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/stats.h"
#include "base/text.h"
#include "base/units.h"
#include "domain/collectives.h"
#include "policy/table.h"
#include "search/sweep.h"
#include "tune/played_machine.h"
#include "tune/session.h"

namespace diapason::tune {

// A tuning of a played machine on a played clock, and how good it is; for tests and benchmarks.
struct PlayedPlan {
  std::vector<Operation> operations = {Operation::kAllReduce, Operation::kAllGather,
                                       Operation::kReduceScatter};
  std::string sizes = "1K:8M:x2";
  double budget = 240;
  double launch_seconds = 3;
  double block_seconds = 0.003;  // beside the calls of a block
  bool between = true;           // see SessionOptions
  std::string store;             // a file that does not exist yet
};

struct PlayedResult {
  TuneOutcome outcome;
  double seconds = 0;           // on the played clock
  double at_tuned = 0;          // of the best, geometric mean
  double between = 0;           // likewise, at sizes that were not asked for
  double default_between = 0;   // the library's own choice there
  double worst_of_default = 0;  // there
  std::string worst_at;
};

// What the policy runs for a call, without noise.
inline double PlayedSeconds(const PlayedMachine& machine, const TuneOutcome& outcome,
                            Operation operation, uint64_t bytes) {
  const policy::DecisionTable table(outcome.policy,
                                    {{outcome.subject.nodes, outcome.subject.ranks}, false});
  Question question;
  question.collective = NamesOf(operation);
  question.bytes = bytes;
  const policy::DecisionTable::Entry* const entry = table.Find(question);
  return machine.Truth(operation, bytes, entry == nullptr ? Config() : entry->config());
}

inline void JudgePlayed(const PlayedMachine& machine, PlayedResult* result) {
  std::vector<double> tuned;
  std::vector<double> between;
  std::vector<double> library;
  result->worst_of_default = 1e9;
  const std::vector<TunedCall>& lines = result->outcome.lines;
  for (size_t i = 0; i < lines.size(); ++i) {
    const Operation operation = lines[i].trial.operation;
    const uint64_t bytes = lines[i].trial.bytes;
    tuned.push_back(machine.Best(operation, bytes) /
                    PlayedSeconds(machine, result->outcome, operation, bytes));
    if (i + 1 == lines.size() || lines[i + 1].trial.operation != operation) continue;
    for (const double share : {0.1, 0.25, 0.4, 0.5, 0.65, 0.75, 0.9}) {
      const uint64_t next = lines[i + 1].trial.bytes;
      const uint64_t size = bytes + static_cast<uint64_t>(share * double(next - bytes));
      const double now = PlayedSeconds(machine, result->outcome, operation, size);
      const double own = machine.Truth(operation, size, {});
      between.push_back(machine.Best(operation, size) / now);
      library.push_back(machine.Best(operation, size) / own);
      if (own / now < result->worst_of_default) {
        result->worst_of_default = own / now;
        result->worst_at = Format("{} {}: {:.3f}", OperationName(operation), size, own / now);
      }
    }
  }
  result->at_tuned = GeometricMean(tuned);
  result->between = GeometricMean(between);
  result->default_between = GeometricMean(library);
}

inline Result<PlayedResult> PlayTuning(const PlayedMachine::Traits& traits,
                                       const PlayedPlan& plan) {
  PlayedMachine machine(traits);
  measure::Subject subject;
  subject.backend = "nccl";
  subject.ranks = traits.ranks;
  subject.nodes = traits.ranks;
  subject.machine.library = "nccl";
  subject.machine.library_version = "2.28.9";
  FakeRanks::History history;
  history.launch_seconds = plan.launch_seconds;
  history.block_seconds = plan.block_seconds;
  ASSIGN_OR_RETURN(const std::unique_ptr<dataset::SampleStore> store,
                   dataset::SampleStore::Open(plan.store, dataset::SampleStore::Access::kWrite));
  TuneInputs inputs;
  inputs.store = store.get();
  inputs.source = [&]() -> Result<std::shared_ptr<measure::Measurer>> {
    const FakeRanks::Times times = [&](const measure::Trial& trial, size_t) {
      measure::Measurement measurement = machine.Measure(trial, history.launched_at.size());
      if (trial.config.protocol == kLl128 || trial.config.algorithm >= kCollNetDirect) {
        if (trial.config.algorithm != kPat || trial.config.protocol == kLl128) {
          measurement.outcome = dataset::SampleOutcome::kRefused;
        }
      }
      return measurement;
    };
    return std::shared_ptr<measure::Measurer>(
        std::make_shared<FakeRanks>(times, subject, &history));
  };
  ASSIGN_OR_RETURN(const std::vector<uint64_t> sizes, ParseSizes(plan.sizes));
  inputs.call_cases = [&](const measure::Subject& of) {
    search::SweepPlan sweep;
    sweep.operations = plan.operations;
    sweep.sizes = sizes;
    sweep.channels = {0, 1, 2, 4, 8, 16, 32};
    return search::MakeCallCases(sweep, of);
  };
  SessionOptions options;
  options.seconds = plan.budget;
  options.seed = traits.seed;
  options.fit = false;
  options.between = plan.between;
  options.clock = [&] { return history.seconds; };
  PlayedResult result;
  ASSIGN_OR_RETURN(result.outcome,
                   Tune(inputs, options, [](Stage, double, const std::string&) { return true; }));
  result.seconds = history.seconds;
  JudgePlayed(machine, &result);
  return result;
}

}  // namespace diapason::tune
