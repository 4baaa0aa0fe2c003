#include "search/sweep.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "comm/backend_facts.h"
#include "domain/collectives.h"
#include "measure/wire.h"

namespace diapason::search {
namespace {

// How a library runs without any tuner.
constexpr char kWithoutPlugin[] = "NCCL_TUNER_PLUGIN=none";

Result<std::vector<int>> AlgorithmsOf(const SweepPlan& plan, Library library,
                                      Collective collective) {
  if (plan.algorithms.empty()) return Algorithms(library, collective);
  std::vector<int> algorithms;
  for (const std::string& name : plan.algorithms) {
    ASSIGN_OR_RETURN(const int algorithm, ParseAlgorithm(library, collective, name));
    algorithms.push_back(algorithm);
  }
  return algorithms;
}

Result<std::vector<int>> ProtocolsOf(const SweepPlan& plan, Library library) {
  if (Protocols(library).empty()) return std::vector<int>{kKeep};
  if (plan.protocols.empty()) return Protocols(library);
  std::vector<int> protocols;
  for (const std::string& name : plan.protocols) {
    ASSIGN_OR_RETURN(const int protocol, ParseProtocol(library, name));
    protocols.push_back(protocol);
  }
  return protocols;
}

Result<std::vector<Candidate>> MakeContenders(const SweepPlan& plan,
                                              const measure::Subject& subject,
                                              Operation operation) {
  std::vector<Candidate> candidates = {{}};
  const Library library = subject.library;
  if (library == Library::kRccl && !subject.simulated) candidates.push_back({{}, kWithoutPlugin});
  for (const std::string& environment : plan.environments) {
    if (!environment.empty()) candidates.push_back({{}, environment});
    const std::optional<Collective> collective = CollectiveOf(operation);
    if (!collective || !CanChoose(library, *collective)) continue;
    ASSIGN_OR_RETURN(const std::vector<int> algorithms, AlgorithmsOf(plan, library, *collective));
    ASSIGN_OR_RETURN(const std::vector<int> protocols, ProtocolsOf(plan, library));
    for (const int algorithm : algorithms) {
      for (const int protocol : protocols) {
        if (AsksTuner(library) && !PairExists(*collective, algorithm, protocol)) continue;
        for (const int channels : plan.channels) {
          for (const int64_t segment : plan.segments) {
            if (segment != 0 && !HasSegments(library)) continue;
            candidates.push_back({{algorithm, protocol, channels, segment}, environment});
          }
        }
      }
    }
  }
  return candidates;
}

}  // namespace

std::string SweepPlan::Text() const {
  std::vector<std::string> parts;
  const auto add = [&](const char* name, const std::vector<std::string>& values) {
    parts.push_back(std::string(name) + "=" + Join(values, ","));
  };
  const auto text = [](const auto& values, const auto& print) {
    std::vector<std::string> texts;
    for (const auto& value : values) texts.push_back(print(value));
    return texts;
  };
  add("collectives", text(operations, measure::CollectiveText));
  add("sizes", text(sizes, FormatBytes));
  add("type", {DataTypeName(type)});
  add("reduce", {ReduceOpName(reduce)});
  add("in_place", {in_place ? "1" : "0"});
  add("algorithms", algorithms);
  add("protocols", protocols);
  add("channels", text(channels, [](int value) { return std::to_string(value); }));
  add("segments", text(segments, [](int64_t value) { return std::to_string(value); }));
  add("environments",
      text(environments, [](const std::string& value) { return "'" + value + "'"; }));
  return Join(parts, "; ");
}

Result<std::vector<CallCase>> MakeCallCases(const SweepPlan& plan,
                                            const measure::Subject& subject) {
  std::vector<CallCase> call_cases;
  for (const Operation operation : plan.operations) {
    ASSIGN_OR_RETURN(const std::vector<Candidate> candidates,
                     MakeContenders(plan, subject, operation));
    for (const uint64_t size : plan.sizes) {
      CallCase call_case;
      call_case.trial.operation = operation;
      call_case.trial.bytes = size;
      call_case.trial.type = plan.type;
      call_case.trial.reduce = Reduces(operation) ? plan.reduce : ReduceOp::kSum;
      call_case.trial.in_place = plan.in_place;
      if (measure::CountOf(call_case.trial, subject.ranks) == 0) continue;
      call_case.candidates = candidates;
      call_cases.push_back(std::move(call_case));
    }
  }
  if (call_cases.empty()) return Invalid("no size has an element for every rank");
  return call_cases;
}

Result<measure::Measurement> CalibratedMeasurer::Measure(const measure::Trial& trial) {
  measure::Trial block = trial;
  block.warmups = 0;
  block.iterations = 1;
  block.check = false;
  const std::string key = measure::EncodeTrial(block) + " " + trial.environment;
  auto known = iterations_.find(key);
  if (known == iterations_.end()) {
    block.warmups = options_.warmups;
    block.check = options_.check;
    Result<measure::Measurement> first = measurer_->Measure(block);
    if (!first.ok() || first.value().outcome != dataset::SampleOutcome::kFine) return first;
    const double fit = options_.block_seconds / std::max(first.value().seconds, 1e-9);
    const int iterations =
        static_cast<int>(std::clamp(std::round(fit), 1.0, double(options_.most_iterations)));
    known = iterations_.emplace(key, iterations).first;
  }
  block.warmups = 1;
  block.iterations = known->second;
  block.check = false;
  return measurer_->Measure(block);
}

SamplesByCandidate KnownFrom(const dataset::StoreContents& contents,
                             const std::vector<CallCase>& call_cases,
                             const measure::Subject& subject) {
  std::map<dataset::Point, std::pair<size_t, size_t>> places;
  SamplesByCandidate known(call_cases.size());
  for (size_t i = 0; i < call_cases.size(); ++i) {
    known[i].resize(call_cases[i].candidates.size());
    for (size_t j = 0; j < call_cases[i].candidates.size(); ++j) {
      measure::Trial trial = call_cases[i].trial;
      trial.config = call_cases[i].candidates[j].config;
      trial.environment = call_cases[i].candidates[j].environment;
      places[measure::PointOf(trial, subject)] = {i, j};
    }
  }
  std::map<std::pair<size_t, size_t>, size_t> failed_in;  // the run, by case and candidate
  for (const dataset::StoredSample& record : contents.records) {
    const auto place = places.find(record.sample.point);
    if (place == places.end()) continue;
    CandidateSamples& evidence = known[place->second.first][place->second.second];
    const auto failed = failed_in.find(place->second);
    if (record.sample.outcome != dataset::SampleOutcome::kFine) {
      evidence.outcome = record.sample.outcome;
      failed_in[place->second] = record.run;
      continue;
    }
    evidence.seconds.push_back(record.sample.seconds);
    // Only on request does a run measure again what has failed in it.
    if (failed != failed_in.end() && failed->second == record.run) evidence.outcome = {};
  }
  return known;
}

double GuessSeconds(const measure::Trial& trial, const measure::Subject& subject) {
  const bool gpu = comm::FactsOfBackend(subject.backend).gpus != nullptr;
  const double latency = gpu ? 50e-6 : 200e-6;
  const double bandwidth = gpu && subject.nodes == 1 ? 50e9 : 1e9;
  return latency + static_cast<double>(trial.bytes) / bandwidth;
}

}  // namespace diapason::search
