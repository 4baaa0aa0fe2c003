// Proves what the search has found, and writes down what is proven.
#include <algorithm>
#include <cmath>

#include "base/stats.h"
#include "base/text.h"
#include "measure/iteration.h"
#include "policy/parse.h"
#include "policy/table.h"
#include "tune/session_state.h"

namespace diapason::tune {
namespace {

using measure::Measurer;
using measure::PolicyCheck;
using measure::PolicyVerdict;
using measure::Trial;

constexpr double kLeastProofShare = 0.3;
// Less than this may be gone with the next launch.
constexpr double kWorthARow = 1.02;
// Starting ranks again must not eat the time for the proof.
constexpr double kMostLaunchShare = 0.35;
constexpr int kMostLaunches = 3;
// Besides its calls, what a block of calls costs; and calls that the first block on new ranks has
// more than the others.
constexpr double kBlockCost = 0.005;
constexpr double kFirstCalls = 6;
// How far a row may reach from what was verified, and beyond the outermost sizes of a step.
constexpr double kReach = 2;
constexpr double kEdge = 1.5;
// What is verified may take this much longer than there is time.
constexpr double kOverdraft = 1.3;

}  // namespace

Config TuneSession::Decided(const policy::Policy& policy, const Trial& trial) const {
  const policy::DecisionTable table(policy,
                                    {{outcome_.subject.nodes, outcome_.subject.ranks}, false});
  Question question;
  question.collective = CollectiveOf(trial);
  question.bytes = trial.bytes;
  const policy::DecisionTable::Entry* const entry = table.Find(question);
  return entry == nullptr ? Config() : entry->config();
}

Result<std::vector<PolicyCheck>> TuneSession::Check(const std::vector<Claim>& claims,
                                                    double seconds,
                                                    const std::string& environment) {
  ASSIGN_OR_RETURN(const std::string run, BeginRun("verify", Format("%zu claims", claims.size())));
  dataset::Recorder recorder(work_.store, run);
  Status trouble;
  VerifyOptions verify;
  verify.seconds = seconds;
  verify.most_rounds = Rounds(2 * claims.size(), measure::kLeastJudgedRounds, verify.most_rounds);
  verify.first_look = std::min(verify.first_look, verify.most_rounds);
  verify.block_seconds = BlockSeconds(true);
  verify.launches =
      std::clamp(static_cast<int>(seconds * kMostLaunchShare / std::max(launch_seconds_, 1e-3)), 1,
                 kMostLaunches);
  if (!options_.relaunch) verify.launches = 1;
  // The ranks of the search end first: they would be in the way.
  const std::shared_ptr<Measurer> same = options_.relaunch ? nullptr : measurer_;
  marked_.reset();
  calibrated_.reset();
  measurer_.reset();
  const MeasurerSource source = [&]() -> Result<std::shared_ptr<Measurer>> {
    ++outcome_.launches;
    // Starting ranks can take long.
    RETURN_IF_ERROR(recorder.Flush());
    ASSIGN_OR_RETURN(std::shared_ptr<Measurer> started, same != nullptr ? same : Launch());
    const std::shared_ptr<Measurer> ranks = std::move(started);
    return std::shared_ptr<Measurer>(new measure::MarkedMeasurer(ranks.get(), &recorder),
                                     [ranks](Measurer* marked) { delete marked; });
  };
  Result<std::vector<PolicyCheck>> checks =
      Verify(claims, source, verify,
             [&](size_t claim, bool tuned, int round, const dataset::Sample& taken) {
               dataset::Sample sample = taken;
               if (tuned && !environment.empty()) sample.point.environment = environment;
               if (Status added = recorder.Add(std::move(sample)); !added.ok()) trouble = added;
               return trouble.ok() && Show(Stage::kVerifying, Format("round %d, ", round + 1) +
                                                                  CallText(claims[claim].tuned));
             });
  if (same != nullptr) measurer_ = same;
  const Status flushed = recorder.Flush();
  const Status ended =
      work_.store->EndRun(run, checks.ok() && !stopped_ ? dataset::SampleRun::State::kDone
                                                        : dataset::SampleRun::State::kInterrupted);
  for (const Status& status : {trouble, flushed, ended}) {
    if (!status.ok()) return status;
  }
  return checks;
}

void TuneSession::Judge(size_t call_case, PolicyCheck check) {
  TunedCall& line = outcome_.lines[call_case];
  if (!check.library.rounds.empty()) line.library = check.library;
  switch (check.verdict) {
    case PolicyVerdict::kFaster:
      if (check.gain < kWorthARow) {
        line.ending = CallOutcome::kNotConfirmed;
        line.why = Format("faster when verified, but by %.1f %% only, which is not worth a row",
                          100 * (check.gain - 1));
        break;
      }
      line.ending = CallOutcome::kTuned;
      line.config = *line.planned;
      break;
    case PolicyVerdict::kFailed:
      line.ending = CallOutcome::kFailed;
      line.why = check.Failure()->note;
      break;
    default:
      line.ending = CallOutcome::kNotConfirmed;
      line.no_time = check.gains.empty();
      line.why = line.no_time ? "there was no time to verify it; a larger --budget gives it"
                              : Format("planned, but the verification says %.2f x [%.2f, %.2f]",
                                       check.gain, check.interval.low, check.interval.high);
      break;
  }
  line.check = std::move(check);
}

double TuneSession::ProofSeconds(const TunedCall& line) const {
  double seconds = 0;
  for (const double call : {line.expected_library, line.expected_tuned}) {
    const double block = std::max(BlockSeconds(true), call) + call + kBlockCost;
    seconds += measure::kLeastJudgedRounds * block + kFirstCalls * call;
  }
  return seconds;
}

Status TuneSession::VerifyWinners() {
  double left = std::max(options_.seconds - Passed(), options_.seconds * kLeastProofShare);
  // Where there is not time for all of them, for those that promise most a second.
  std::vector<size_t> order;
  for (size_t i = 0; i < outcome_.lines.size(); ++i) {
    const TunedCall& line = outcome_.lines[i];
    if (line.planned.has_value() && line.ending != CallOutcome::kNoDefault) order.push_back(i);
  }
  const auto promise = [&](size_t i) {
    const TunedCall& line = outcome_.lines[i];
    return std::log(line.expected_library / line.expected_tuned) / ProofSeconds(line);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return promise(a) > promise(b); });
  double needed = 0;
  std::vector<Claim> claims;
  std::vector<size_t> of_case;
  for (const size_t i : order) {
    TunedCall& line = outcome_.lines[i];
    needed += ProofSeconds(line);
    if (!claims.empty() && needed > left * kOverdraft) {
      line.ending = CallOutcome::kNotConfirmed;
      line.no_time = true;
      line.why = Format(
          "it may be %.2f x as fast, but there was no time to verify it; a larger "
          "--budget gives it",
          line.expected_library / line.expected_tuned);
      continue;
    }
    Claim claim{line.trial, line.trial};
    claim.tuned.config = *line.planned;
    // Loading any tuner switches RCCL's own table off: its default is the one without us.
    for (const search::Candidate& candidate : call_cases_[i].candidates) {
      if (candidate.config.IsDefault() && !candidate.environment.empty()) {
        claim.library.environment = candidate.environment;
      }
    }
    claims.push_back(claim);
    of_case.push_back(i);
  }
  if (claims.empty()) return {};
  const bool twice = Iterations() && claims.size() > 1;  // then all of them together
  if (twice) left /= 2;
  ASSIGN_OR_RETURN(std::vector<PolicyCheck> checks, Check(claims, left, ""));
  for (size_t i = 0; i < checks.size(); ++i) {
    Judge(of_case[i], std::move(checks[i]));
  }
  return {};
}

void TuneSession::DropAll(const std::string& why) {
  for (TunedCall& line : outcome_.lines) {
    if (line.ending != CallOutcome::kTuned) continue;
    line.ending = CallOutcome::kNotConfirmed;
    line.config = {};
    line.why = why;
  }
}

Status TuneSession::ProveTogether() {
  if (!Iterations() || outcome_.Tuned() == 0) return {};
  if (outcome_.Tuned() == 1) {
    for (const TunedCall& line : outcome_.lines) {
      if (line.ending == CallOutcome::kTuned) outcome_.whole = line.check;
    }
    return {};
  }
  Claim claim{call_cases_.front().trial, call_cases_.front().trial};
  ASSIGN_OR_RETURN(measure::IterationSpec spec, measure::DecodeSpec(claim.tuned.workload));
  for (measure::Bucket& bucket : spec.buckets) {
    for (const TunedCall& line : outcome_.lines) {
      if (line.trial.operation == bucket.operation && line.trial.bytes == bucket.bytes) {
        bucket.config = line.config;
      }
    }
  }
  claim.tuned.workload = measure::EncodeSpec(spec);
  const double left =
      std::max(options_.seconds - Passed(), options_.seconds * kLeastProofShare / 2);
  ASSIGN_OR_RETURN(std::vector<PolicyCheck> checks,
                   Check({claim}, left, "DIAPASON_POLICY=policy.conf"));
  outcome_.whole = std::move(checks.front());
  if (outcome_.whole->verdict != PolicyVerdict::kFaster) {
    DropAll(Format("faster by itself, but all changes together are not: %.2f x [%.2f, %.2f]",
                   outcome_.whole->gain, outcome_.whole->interval.low,
                   outcome_.whole->interval.high));
  }
  return {};
}

Status TuneSession::Write() {
  // With what the final round has added. Rows and their boundaries; what they say is what was
  // proven.
  ASSIGN_OR_RETURN(model::Grid grid, ReadGrid());
  model::PlanOptions options;
  options.origin = options_.origin;
  options.reach = kReach;
  // Nobody's buckets have exactly the bytes that a step was made of.
  if (Iterations()) options.edge = kEdge;
  options.chosen = [this](const model::CallPlace& place, uint64_t bytes) -> Config {
    for (const TunedCall& line : outcome_.lines) {
      if (line.trial.bytes == bytes && PlaceOf(line.trial) == place) return line.config;
    }
    return {};
  };
  ASSIGN_OR_RETURN(model::PlannedPolicy plan, model::MakePlan(&grid, nullptr, options));
  outcome_.policy = std::move(plan.policy);
  outcome_.policy.header.fingerprint = grid.machine;
  std::vector<std::string> remarks;
  for (const policy::Rule& rule : outcome_.policy.rules) {
    std::vector<double> gains;
    const TunedCall* least = nullptr;
    for (const TunedCall& line : outcome_.lines) {
      if (line.ending != CallOutcome::kTuned || CollectiveOf(line.trial) != rule.collective ||
          line.trial.bytes < rule.min_bytes || line.trial.bytes > rule.max_bytes) {
        continue;
      }
      gains.push_back(line.Gain());
      if (least == nullptr || line.Gain() < least->Gain()) least = &line;
    }
    if (least == nullptr) {
      return Internal("a row that was not verified: " +
                      policy::RuleText(outcome_.policy.library, rule));
    }
    remarks.push_back(
        Format("verified: %.2f x over %s, at least %.2f x [%.2f, %.2f] in %s", GeometricMean(gains),
               Count(gains.size(), "size").c_str(), least->check->gain, least->check->interval.low,
               least->check->interval.high, Count(least->check->gains.size(), "round").c_str()));
  }
  for (const TunedCall& line : outcome_.lines) {
    if (Decided(outcome_.policy, line.trial) == line.config) continue;
    return Internal("the policy does not say what was proven for " + CallText(line.trial));
  }
  outcome_.policy_text = policy::PolicyText(outcome_.policy, remarks);
  // As a reader finds it: rows have the lines of the file then.
  ASSIGN_OR_RETURN(outcome_.policy, policy::ParseStrictly(outcome_.policy_text, "policy.conf", {}));
  return {};
}

}  // namespace diapason::tune
