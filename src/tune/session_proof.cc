// Proves what the search has found.
#include <algorithm>
#include <cmath>

#include "base/stats.h"
#include "base/text.h"
#include "measure/iteration.h"
#include "tune/session_state.h"

namespace diapason::tune {
namespace {

using measure::Measurer;
using measure::PolicyCheck;
using measure::PolicyVerdict;
using measure::Trial;

constexpr double kLeastProofShare = 0.2;
// The rest is for those who came second where the winner was not confirmed.
constexpr double kFirstProofShare = 0.85;
// The last round may end so much later than the budget.
constexpr double kOverdraft = 1.03;
// Classes of claims are this far apart in priority.
constexpr double kTier = 1e9;
// What the neighbours run is verified too, unless it has been seen to be slower than this.
constexpr double kWorthAChance = 0.98;
// A winner has to be ahead by this of what the neighbours run.
constexpr double kClearlyFaster = 1.03;
// Less than this may be gone with the next launch.
constexpr double kWorthARow = 1.02;
// Starting ranks again must not eat the time for the proof.
constexpr double kMostLaunchShare = 0.35;
constexpr int kMostLaunches = 6;
// Launches of Open MPI on shared cores have speeds of their own.
constexpr int kMostMpiLaunches = 8;
// Besides its calls, what a block of calls costs; and calls that the first block on new ranks has
// more than the others.
constexpr double kBlockCost = 0.005;
constexpr double kFirstCalls = 6;
// An interval of a gain that is wider says nothing, and its ends are not shown.
constexpr double kWidestInterval = 10;

std::string WhyNotConfirmed(const PolicyCheck& check, const std::string& more) {
  if (check.verdict == PolicyVerdict::kTooFewRounds) {
    return "there was not enough time to verify it; " + more;
  }
  if (check.launches_differ && check.interval.high > kWidestInterval * check.interval.low) {
    return "planned, but the launches that verify it differ too much to tell";
  }
  return Format("planned, but the verification says {:.2f} x [{:.2f}, {:.2f}]{}", check.gain,
                check.interval.low, check.interval.high,
                check.launches_differ ? " over launches that differ" : "");
}

}  // namespace

Result<std::vector<PolicyCheck>> TuneSession::Check(const std::vector<Claim>& claims,
                                                    double seconds,
                                                    const std::string& environment) {
  ASSIGN_OR_RETURN(const std::string run, BeginRun("verify", Format("{} claims", claims.size())));
  dataset::Recorder recorder(work_.store, run);
  Status trouble;
  VerifyOptions verify;
  verify.seconds = seconds;
  verify.most_rounds = Rounds(2 * claims.size(), measure::kLeastJudgedRounds, verify.most_rounds);
  verify.first_look = std::min(verify.first_look, verify.most_rounds);
  verify.block_seconds = BlockSeconds(true);
  verify.clock = options_.clock;
  // A machine that has become slower must not be paid for with more time than was given.
  verify.hard_seconds = std::max(options_.seconds * kOverdraft - Passed(), seconds);
  const int most = outcome_.subject.library == Library::kOpenMpi ? kMostMpiLaunches : kMostLaunches;
  verify.launches = std::clamp(
      static_cast<int>(seconds * kMostLaunchShare / std::max(launch_seconds_, 1e-3)), 1, most);
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
               return trouble.ok() && Show(Stage::kVerifying, Format("round {}, ", round + 1) +
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
        line.why = Format("faster when verified, but by {:.1f} % only, which is not worth a row",
                          100 * (check.gain - 1));
        break;
      }
      line.ending = CallOutcome::kTuned;
      line.config = *line.planned;
      line.no_time = false;
      break;
    case PolicyVerdict::kFailed:
      line.ending = CallOutcome::kFailed;
      line.why = check.Failure()->note;
      break;
    default:
      line.ending = CallOutcome::kNotConfirmed;
      line.no_time = check.verdict == PolicyVerdict::kTooFewRounds;
      line.why = WhyNotConfirmed(check, More());
      break;
  }
  line.check = std::move(check);
}

double TuneSession::ProofSeconds(const Proposal& proposal) const {
  const double cost = proposal.call_case < cost_.size() ? cost_[proposal.call_case] : 0;
  double seconds = 0;
  for (const double call : {winners_[proposal.call_case].library_default, proposal.seconds}) {
    // What a block of calls takes by their own clock, or what one has cost: simulated calls are
    // short, simulating them is not.
    const double block = std::max(std::max(BlockSeconds(true), call) + call + kBlockCost, cost);
    // The first time one more tells how long blocks have to be.
    seconds += (measure::kLeastJudgedRounds + 1) * block + kFirstCalls * call;
  }
  return seconds;
}

std::vector<TuneSession::Proposal> TuneSession::FirstProposals() const {
  std::vector<Proposal> proposals;
  for (size_t i = 0; i < outcome_.lines.size(); ++i) {
    const TunedCall& line = outcome_.lines[i];
    if (line.ending == CallOutcome::kNoDefault) continue;
    const auto add = [&](const Config& config, double seconds, double tier) {
      Proposal proposal{i, config, seconds, 0};
      const double gain = std::max(std::log(winners_[i].library_default / seconds), 0.0);
      // First all sizes that were asked for; of those, what promises most a second.
      proposal.priority = tier + std::min(gain / ProofSeconds(proposal), kTier / 2);
      proposals.push_back(proposal);
    };
    if (line.planned.has_value()) {
      add(*line.planned, line.expected_tuned, line.between ? 0 : 2 * kTier);
    }
    const double seen = line.neighbours.has_value() ? GainSeen(i, *line.neighbours) : 0;
    if (seen >= kWorthAChance) {
      add(*line.neighbours, winners_[i].library_default / seen, kTier);
    }
  }
  return proposals;
}

// Who came second, where the winner was not confirmed.
std::vector<TuneSession::Proposal> TuneSession::SecondProposals() const {
  std::vector<Proposal> proposals;
  for (size_t i = 0; i < outcome_.lines.size(); ++i) {
    const TunedCall& line = outcome_.lines[i];
    const bool refused =
        line.ending == CallOutcome::kNotConfirmed || line.ending == CallOutcome::kFailed;
    if (!refused || line.no_time || line.between || !line.second.has_value()) continue;
    const double gain = winners_[i].library_default / line.second_seconds;
    if (gain < kWorthARow) continue;
    proposals.push_back({i, *line.second, line.second_seconds, std::log(gain)});
  }
  return proposals;
}

Claim TuneSession::ClaimOf(const Proposal& proposal) const {
  const TunedCall& line = outcome_.lines[proposal.call_case];
  Claim claim{line.trial, line.trial};
  claim.tuned.config = proposal.config;
  // Loading any tuner switches RCCL's own table off: its default is the one without us.
  for (const search::Candidate& candidate : call_cases_[proposal.call_case].candidates) {
    if (candidate.config.IsDefault() && !candidate.environment.empty()) {
      claim.library.environment = candidate.environment;
    }
  }
  return claim;
}

Status TuneSession::VerifyProposals(std::vector<Proposal> proposals, double seconds, bool first) {
  std::stable_sort(proposals.begin(), proposals.end(),
                   [](const Proposal& a, const Proposal& b) { return a.priority > b.priority; });
  double needed = options_.relaunch ? launch_seconds_ : 0;
  std::vector<Claim> claims;
  std::vector<size_t> of_case;
  for (const Proposal& proposal : proposals) {
    TunedCall& line = outcome_.lines[proposal.call_case];
    needed += ProofSeconds(proposal);
    if (needed > seconds && (!claims.empty() || !first)) {
      if (!first || !line.planned.has_value() || !(proposal.config == *line.planned)) continue;
      line.ending = CallOutcome::kNotConfirmed;
      line.no_time = true;
      line.why = Format(
          "it may be {:.2f} x as fast, but there was no time to verify it; a larger "
          "--budget gives it",
          line.expected_library / line.expected_tuned);
      continue;
    }
    claims.push_back(ClaimOf(proposal));
    of_case.push_back(proposal.call_case);
  }
  if (claims.empty()) return {};
  ASSIGN_OR_RETURN(std::vector<PolicyCheck> checks, Check(claims, seconds, ""));
  std::map<size_t, std::vector<PolicyCheck>> by_case;
  for (size_t i = 0; i < checks.size(); ++i) by_case[of_case[i]].push_back(std::move(checks[i]));
  for (auto& [call_case, some] : by_case) {
    if (first) {
      Accept(call_case, std::move(some));
    } else if (some.front().verdict == PolicyVerdict::kFaster && some.front().gain >= kWorthARow) {
      outcome_.lines[call_case].why.clear();
      Accept(call_case, std::move(some));
    }
  }
  return {};
}

// Of several that were verified, the one that the neighbours run is taken unless the winner is
// clearly faster.
void TuneSession::Accept(size_t call_case, std::vector<PolicyCheck> checks) {
  TunedCall& line = outcome_.lines[call_case];
  size_t best = 0;
  for (size_t i = 1; i < checks.size(); ++i) {
    const bool faster = checks[i].verdict == PolicyVerdict::kFaster;
    const bool ahead = checks[best].verdict == PolicyVerdict::kFaster;
    const bool around = line.neighbours.has_value() && checks[i].trial.config == *line.neighbours;
    const double handicap = around ? kClearlyFaster : 1 / kClearlyFaster;
    if (faster && (!ahead || checks[i].gain * handicap > checks[best].gain)) best = i;
  }
  line.planned = checks[best].trial.config;
  Judge(call_case, std::move(checks[best]));
}

Status TuneSession::VerifyWinners() {
  const double left = std::max(options_.seconds - Passed(), options_.seconds * kLeastProofShare);
  const std::vector<Proposal> proposals = FirstProposals();
  size_t cases = 0;
  for (const TunedCall& line : outcome_.lines) cases += line.planned.has_value() ? 1 : 0;
  // All of a step are verified together as well.
  const double share = Iterations() && cases > 1 ? 0.5 : kFirstProofShare;
  RETURN_IF_ERROR(VerifyProposals(proposals, left * share, true));
  if (Iterations() || stopped_) return {};
  const double rest = std::min(options_.seconds - Passed(), left * (1 - kFirstProofShare));
  return VerifyProposals(SecondProposals(), rest, false);
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
    DropAll(Format("faster by itself, but all changes together are not: {:.2f} x [{:.2f}, {:.2f}]",
                   outcome_.whole->gain, outcome_.whole->interval.low,
                   outcome_.whole->interval.high));
  }
  return {};
}

}  // namespace diapason::tune
