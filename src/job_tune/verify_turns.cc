#include "job_tune/verify_turns.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/text.h"
#include "job/outcome.h"
#include "job_tune/journal_window.h"

namespace diapason::job_tune {
namespace {

constexpr double kTurnIterations = 20;
constexpr double kShortestTurn = 0.25;  // seconds
constexpr double kLongestTurn = 60;
constexpr double kTurnsPerLaunch = 20;
constexpr int kVerifyingLaunches = 3;
constexpr int kLeastInTurns = 2;
constexpr int kMostVerifying = 5;
// An interval that is so narrow needs no further launch.
constexpr double kNarrow = 0.03;

double TurnSecondsOf(double iteration) {
  return std::clamp(kTurnIterations * iteration, kShortestTurn, kLongestTurn);
}
double LaunchSeconds(double iteration, double start_up) {
  return start_up + kTurnsPerLaunch * TurnSecondsOf(iteration) + kToEnd;
}

}  // namespace

double TurnVerifier::SecondsToKeep(double budget, bool found, double iteration, double start_up) {
  const int launches = found ? kVerifyingLaunches : kLeastInTurns;
  return std::min(kMostForVerifying * budget, launches * LaunchSeconds(iteration, start_up));
}

double TurnVerifier::TurnSeconds() const { return TurnSecondsOf(run_.result.look.iteration); }

bool TurnVerifier::Confirmed() const {
  const PooledGain& gain = run_.result.gain;
  return gain.launches >= static_cast<size_t>(kLeastInTurns) && gain.low > 1;
}

bool TurnVerifier::WantsAnother() const {
  const int made = static_cast<int>(run_.result.verified.size());
  const double seconds = LaunchSeconds(run_.result.look.iteration, start_up_);
  if (made >= kMostVerifying || run_.launches().left() == 0 || run_.Left() < seconds) return false;
  if (made < kVerifyingLaunches) return true;
  const PooledGain& gain = run_.result.gain;
  return !Confirmed() || gain.high - gain.low > kNarrow * gain.gain;
}

Status TurnVerifier::Verify(const std::string& policy) {
  while (WantsAnother()) {
    const int number = static_cast<int>(run_.result.verified.size()) + 1;
    LaunchPlan plan;
    plan.purpose = Format("verify {}", number);
    plan.mode = job::JobMode::kCompare;
    plan.policy = policy;
    plan.variables = {{"DIAPASON_JOURNAL_TIMES", "1"},
                      {"DIAPASON_TURN", Format("{}", std::llround(1000 * TurnSeconds()))}};
    plan.limit = std::max(1.0, run_.Left());
    double first_call = 0;
    plan.enough = [this, &first_call, number](const job::PreparedJob& job) {
      return Enough(job, number, &first_call);
    };
    ASSIGN_OR_RETURN(const Launch launch, run_.Start(plan));
    if (run_.result.interrupted) return {};
    const std::string trouble = Launches::Trouble(launch);
    if (!trouble.empty()) return Unavailable("a launch that was to verify: " + trouble);
    RETURN_IF_ERROR(Take(launch));
  }
  return {};
}

bool TurnVerifier::Enough(const job::PreparedJob& job, int number, double* first_call) const {
  const double now = SteadySeconds();
  run_.Progress(Format("verify: launch {}, the default and the policy in turns", number));
  if (*first_call == 0) {
    if (HasRecords(job.Journals())) *first_call = now;
    return false;
  }
  return now - *first_call > kTurnsPerLaunch * TurnSeconds();
}

Status TurnVerifier::Take(const Launch& launch) {
  const std::vector<std::string> journals = launch.prepared.Journals();
  const job::JobOutcome outcome = job::ReadOutcome(journals);
  if (outcome.Differed()) {
    return Unavailable(
        "ranks chose differently while the policy was verified; see `diapason "
        "journal check " +
        launch.prepared.journal_dir + "/*`");
  }
  VerifyingLaunch verified;
  verified.launch = launch.number;
  journals_[launch.number] = journals;
  job_profile::TurnComparer comparer;
  for (const std::string& path : journals) {
    const Result<journal::JournalContents> contents = journal::ReadJournal(path);
    if (contents.ok()) comparer.Add(path, contents.value());
  }
  // By the calls that decide most: the order of calls shows no iterations where all are alike.
  const Result<job_profile::TurnComparison> compared = comparer.Finish(CountedCalls());
  if (compared.ok()) {
    verified.compared = compared.value();
  } else {
    verified.compared.trouble = compared.status().message();
  }
  run_.Say(Format("launch {}: {}", verified.launch, verified.compared.Text()));
  run_.result.verified.push_back(std::move(verified));
  run_.result.gain = PoolLaunches(run_.result.verified);
  return {};
}

// Of the context with most time that the policy changes.
job_profile::CountedCalls TurnVerifier::CountedCalls() const {
  for (const TunedContext& one : run_.result.contexts) {
    if (!one.chosen.IsDefault()) return CountedIn(one);
  }
  return {};
}

std::string TurnVerifier::WhyUndecided() const {
  const JobTuneResult& result = run_.result;
  if (result.gain.launches >= static_cast<size_t>(kLeastInTurns)) return "";
  for (const VerifyingLaunch& one : result.verified) {
    if (!one.compared.Decided()) {
      return "too few launches could be compared: " + one.compared.trouble;
    }
  }
  const double missing = kLeastInTurns - static_cast<double>(result.verified.size());
  return Format(
      "{} to verify what was found, and {} are needed; give {}",
      result.verified.empty() ? "there was no time for a launch" : "there was time for one launch",
      kLeastInTurns,
      run_.launches().left() == 0
          ? "more --launches"
          : run_.BudgetText(missing * LaunchSeconds(result.look.iteration, start_up_)));
}

void TurnVerifier::Picture() {
  JobTuneResult& result = run_.result;
  // The verdict does not need it.
  if (result.gain.launch > 0) {
    (void)ProfileSettings(journals_[result.gain.launch], CountedCalls(), &result);
  }
}

}  // namespace diapason::job_tune
