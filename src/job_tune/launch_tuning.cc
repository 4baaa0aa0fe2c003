#include "job_tune/launch_tuning.h"

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "job/outcome.h"

namespace diapason::job_tune {
namespace {

// A launch is long enough with so many iterations, and not before it has run for as long as it took
// to start, within these seconds: a long start pays for a longer look.
constexpr size_t kLaunchIterations = 100;
constexpr size_t kLongLaunchIterations = 30;  // of more than kLongOne seconds
constexpr double kLongOne = 0.1;
constexpr double kLeastSeconds = 0.3;
constexpr double kMostSeconds = 5;
constexpr std::chrono::milliseconds kAskEvery{50};
constexpr double kReadAgain = 1.5;  // times as late
// What a launch may take longer than expected before it counts as failed.
constexpr double kPatience = 5;
constexpr double kLeastPatience = 30;  // seconds
constexpr int kMostOwnFailures = 2;    // of the library's own choice, one after the other

constexpr size_t kLeastPairs = 3;
// Launches differ in length, and some time passes between them.
constexpr double kSlack = 1.15;
constexpr double kLeastTrials = 3;  // launches that a search needs to find something
constexpr size_t kMostPairs = 8;
constexpr size_t kEnoughPairs = 5;  // to leave it, if they are no faster
constexpr size_t kMostUndecided = 2;
constexpr int kMetric = 3;  // launches that compare the metric
// An interval that is so narrow needs no further pair.
constexpr double kNarrowPairs = 0.1;

}  // namespace

LaunchTuner::LaunchTuner(TuningRun* run, const LaunchTiming& timing, double start_up)
    : run_(*run),
      timing_(timing),
      start_up_(start_up),
      least_(std::clamp(start_up, kLeastSeconds, kMostSeconds)),
      wanted_(run->result.look.iteration > kLongOne ? kLongLaunchIterations : kLaunchIterations) {}

// By those that were made; before, by the look.
double LaunchTuner::LaunchSeconds() const {
  if (made_ > 0) return made_seconds_ / made_;
  if (timing_.whole && !run_.result.launches.empty()) return run_.result.launches.back().seconds;
  const double iterations = static_cast<double>(wanted_) * run_.result.look.iteration;
  return start_up_ + std::max(least_, iterations) + kToEnd;
}

// Of pairs that verify, and of the metric after them.
int LaunchTuner::LaunchesKept() const {
  return static_cast<int>(2 * kLeastPairs) + (run_.request().metric.pattern.empty() ? 0 : kMetric);
}

bool LaunchTuner::RoomForSearch() const {
  const double verifying = kSlack * 2.0 * kLeastPairs * LaunchSeconds();
  return run_.launches().left() > LaunchesKept() &&
         run_.Left() - LaunchSeconds() >
             std::min(kMostForVerifying * run_.request().budget, verifying);
}

bool LaunchTuner::Enough(const job::PreparedJob& job, const std::string& purpose) {
  const double now = SteadySeconds();
  run_.Progress(purpose);
  if (timing_.whole) return false;
  if (first_call_ == 0) {
    if (!HasRecords(job.Journals())) return false;
    first_call_ = now;
    next_look_ = now + least_;
  }
  if (now < next_look_) return false;
  next_look_ = first_call_ + (now - first_call_) * kReadAgain;
  return timer_->Read(job.Journals()).iterations >= wanted_;
}

LaunchTime LaunchTuner::TimeOf(const Launch& launch) {
  LaunchTime time;
  time.trouble = Launches::Trouble(launch);
  if (!time.trouble.empty()) return time;
  if (!timing_.whole) return timer_->Read(launch.prepared.Journals());
  if (!launch.ended.limited) {
    return WholeLaunchTime(launch.prepared.Journals(), launch.ended_ns);
  }
  time.trouble = "it did not end by itself in the time there was";
  return time;
}

Result<LaunchTuner::Timed> LaunchTuner::Time(const std::string& purpose,
                                             const std::string& policy) {
  timer_ = std::make_unique<IterationTimer>(timing_);
  first_call_ = 0;
  LaunchPlan plan;
  plan.purpose = purpose;
  plan.mode = policy.empty() ? job::JobMode::kObserve : job::JobMode::kStatic;
  plan.policy = policy;
  // A timed kernel adds a host node to the graph, which makes it slower.
  plan.variables = {{"DIAPASON_JOURNAL_TIMES", "0"}};
  plan.ask_every = kAskEvery;
  const double patience = std::max(kLeastPatience, kPatience * LaunchSeconds());
  plan.limit = std::max(1.0, std::min(run_.Left(), patience));
  plan.enough = [this, &purpose](const job::PreparedJob& job) { return Enough(job, purpose); };
  ASSIGN_OR_RETURN(const Launch launch, run_.Start(plan));
  Timed timed;
  timed.launch = launch.number;
  if (run_.result.interrupted) return timed;
  made_seconds_ += launch.seconds;
  ++made_;
  journals_[launch.number] = launch.prepared.Journals();
  timed.time = TimeOf(launch);
  if (!policy.empty()) RETURN_IF_ERROR(CheckRanks(launch));
  run_.Say(timed.time.seconds > 0
               ? Format("launch {}: {}", launch.number, run_.result.TakesText(timed.time.seconds))
               : Format("launch {} does not count: {}", launch.number, timed.time.trouble));
  return timed;
}

Status LaunchTuner::CheckRanks(const Launch& launch) const {
  if (!job::ReadOutcome(launch.prepared.Journals()).Differed()) return {};
  return Unavailable("ranks chose differently in launch " + Format("{}", launch.number) +
                     "; see `diapason journal check " + launch.prepared.journal_dir + "/*`");
}

// A file with the rows of a setting, and of what other contexts have; "" if there is none.
Result<std::string> LaunchTuner::WriteTrial(const JobSetting& setting, size_t first) const {
  policy::Policy rows;
  const std::vector<TunedContext>& contexts = run_.result.contexts;
  for (size_t i = 0; i < contexts.size(); ++i) {
    const bool own = i >= first && i < first + setting.size();
    const Config& config = own ? setting[i - first] : contexts[i].chosen;
    if (config.IsDefault()) continue;
    rows.library = contexts[i].context.library;
    rows.rules.push_back(RowOf(contexts[i].context, config));
  }
  if (rows.rules.empty()) return std::string();
  rows.header.origin = "diapason tune, a trial";
  const std::string path = (std::filesystem::path(run_.request().output) / "trial.conf").string();
  RETURN_IF_ERROR(WriteFileAtomically(path, policy::PolicyText(rows)));
  return path;
}

std::string LaunchTuner::PurposeOf(const LaunchSearch& search, const JobSetting& setting) const {
  const JobContext& context = search.contexts()[search.current()].context;
  const Config& config = setting[search.current()];
  return Format("try {} for {}",
                config.IsDefault() ? "the library's choice"
                                   : ConfigText(context.library, context.collective, config),
                context.Text());
}

Status LaunchTuner::Search(std::vector<SearchContext> contexts, size_t first) {
  LaunchSearch search(std::move(contexts));
  run_.Say(Format("trying {} of captured calls, each configuration in launches of its own",
                  Count(search.contexts().size(), "context")));
  int failed = 0;
  while (const std::optional<JobSetting> setting = search.Next()) {
    if (!RoomForSearch()) break;
    ASSIGN_OR_RETURN(const std::string policy, WriteTrial(*setting, first));
    ASSIGN_OR_RETURN(const Timed timed, Time(PurposeOf(search, *setting), policy));
    if (run_.result.interrupted) break;
    const bool own = (*setting)[search.current()].IsDefault();
    if (own) failed = timed.time.seconds > 0 ? 0 : failed + 1;
    if (failed >= kMostOwnFailures) {
      return Unavailable("the command cannot be timed by launches: " + timed.time.trouble);
    }
    search.Learn(timed.time.seconds);
  }
  search.Stop();
  complete_ = search.over();
  TakeSearch(search, first);
  return {};
}

void LaunchTuner::TakeSearch(const LaunchSearch& search, size_t first) {
  const JobSetting best = search.Candidate();
  for (size_t i = 0; i < best.size(); ++i) {
    TunedContext& one = run_.result.contexts[first + i];
    one.tried = search.TriedIn(i);
    one.chosen = best[i];
    if (one.tried.empty() && i >= search.current()) {
      one.untried = Format("captured in CUDA graphs, and {} left to try it",
                           run_.launches().left() <= LaunchesKept() ? "no launch was (--launches)"
                                                                    : "no time was (--budget)");
    }
  }
}

std::string LaunchTuner::WhatWouldDo() const {
  if (run_.launches().left() <= LaunchesKept()) return "more --launches";
  return run_.BudgetText(kSlack * (kLeastTrials + 2.0 * kLeastPairs) * LaunchSeconds());
}

bool LaunchTuner::WantsAnotherPair() const {
  const PooledGain& gain = run_.result.gain;
  const size_t made = run_.result.pairs.size();
  const int kept = made < kLeastPairs ? 0 : LaunchesKept() - static_cast<int>(2 * kLeastPairs);
  const bool room = run_.launches().left() >= 2 + kept && run_.Left() >= 2 * LaunchSeconds();
  if (made >= kMostPairs || !room) return false;
  if (gain.undecided >= kMostUndecided) return false;
  if (gain.launches < kLeastPairs) return true;
  if (gain.launches >= kEnoughPairs && gain.gain <= 1) return false;
  return !Confirmed() || gain.high - gain.low > kNarrowPairs * gain.gain;
}

Status LaunchTuner::Verify(const std::string& policy) {
  while (WantsAnotherPair()) {
    const size_t number = run_.result.pairs.size() + 1;
    VerifyingPair pair;
    const bool policy_first = number % 2 == 0;
    for (const bool tuned : {policy_first, !policy_first}) {
      ASSIGN_OR_RETURN(
          const Timed timed,
          Time(Format("verify {}, {}", number, tuned ? "policy" : "default"), tuned ? policy : ""));
      if (run_.result.interrupted) return {};
      (tuned ? pair.policy_launch : pair.default_launch) = timed.launch;
      (tuned ? pair.policy_seconds : pair.default_seconds) = timed.time.seconds;
      (tuned ? pair.policy_iterations : pair.default_iterations) = timed.time.iterations;
      if (timed.time.seconds <= 0) pair.trouble = timed.time.trouble;
    }
    run_.result.pairs.push_back(std::move(pair));
    run_.result.gain = PoolPairs(run_.result.pairs);
  }
  return {};
}

bool LaunchTuner::Confirmed() const {
  const PooledGain& gain = run_.result.gain;
  return gain.launches >= kLeastPairs && gain.low > 1;
}

std::string LaunchTuner::WhyUndecided() const {
  const JobTuneResult& result = run_.result;
  if (result.gain.launches >= kLeastPairs) return "";
  for (const VerifyingPair& one : result.pairs) {
    if (!one.Decided()) return "too few pairs of launches could be compared: " + one.trouble;
  }
  const double missing = kSlack * 2.0 * static_cast<double>(kLeastPairs - result.pairs.size());
  return Format(
      "there was room for {} of launches to verify what was found, and {} are needed; "
      "give {}",
      Count(result.pairs.size(), "pair"), kLeastPairs,
      run_.launches().left() < 2 ? "more --launches" : run_.BudgetText(missing * LaunchSeconds()));
}

void LaunchTuner::Picture() {
  JobTuneResult& result = run_.result;
  // The verdict does not need it.
  if (result.gain.launch > 0 && !timing_.whole) {
    (void)ProfilePair(journals_[result.gain.default_launch], journals_[result.gain.launch],
                      &result);
  }
}

}  // namespace diapason::job_tune
