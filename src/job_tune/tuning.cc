#include "job_tune/tuning.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "agree/store.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/settings.h"
#include "base/text.h"
#include "base/units.h"
#include "job/outcome.h"
#include "job_tune/launches.h"
#include "job_tune/live_search.h"
#include "policy/policy.h"

namespace diapason::job_tune {
namespace {

constexpr double kTurnIterations = 20;
constexpr double kShortestTurn = 0.25;  // seconds
constexpr double kLongestTurn = 60;
constexpr double kTurnsPerLaunch = 20;
constexpr int kVerifyingLaunches = 3;
constexpr int kLeastVerifying = 2;
constexpr int kMostVerifying = 5;
// An interval that is so narrow needs no further launch.
constexpr double kNarrow = 0.03;
constexpr double kToEnd = 3;               // seconds that a command takes to end when it is asked
constexpr double kMostForVerifying = 0.6;  // of the budget
constexpr double kLeastSearch = 3;         // seconds in a launch
constexpr double kMostLook = 60;
constexpr int kFruitless = 2;  // launches in which the search does not get on
constexpr std::chrono::milliseconds kAskWhileSearching{5};

class JobTuner {
 public:
  JobTuner(const Request& request, const Environment& environment, const Events& events)
      : request_(request),
        events_(events),
        launches_(request, environment, [this](const std::string& text) { Say(text); }),
        begun_(SteadySeconds()),
        deadline_(begun_ + request.budget),
        live_(SearchOptionsFor(environment)) {
    std::vector<std::string> words;
    for (const std::string& word : request.command) words.push_back(ShellWord(word));
    result_.command = Join(words, " ");
  }

  Result<JobTuneResult> Run() {
    Say(Format("the command is started {} times at most, within {}; DIAPASON_LAUNCH is set in it",
               request_.most_launches, DurationText(request_.budget)));
    RETURN_IF_ERROR(LookAndSearch());
    if (!result_.interrupted) RETURN_IF_ERROR(Conclude());
    if (result_.interrupted) {
      // Nothing is confirmed before everything was done.
      result_.verdict = Verdict::kUndecided;
      result_.policy.rules.clear();
    }
    result_.seconds = SteadySeconds() - begun_;
    return std::move(result_);
  }

 private:
  LiveSearchOptions SearchOptionsFor(const Environment& environment) {
    LiveSearchOptions options;
    const Settings settings = Settings::Read(environment);
    store_ = !request_.store.empty()           ? request_.store
             : settings.IsSet(Setting::kStore) ? settings.Text(Setting::kStore)
                                               : "shm";
    options.store = store_;
    options.look_limit = std::min(kMostLook, request_.budget / 3);
    options.looked = [this](const job_profile::JobProfile& profile, const JobOffers& offers) {
      Looked(profile, offers);
    };
    options.progress = [this](const std::string& text) { Progress("search: " + text); };
    return options;
  }
  void Say(const std::string& text) const {
    if (events_.say) events_.say(text);
  }
  void Progress(const std::string& what) const {
    if (events_.progress) {
      events_.progress((SteadySeconds() - begun_) / request_.budget, what);
    }
  }
  double Left() const { return deadline_ - SteadySeconds(); }
  double TurnSeconds() const {
    return std::clamp(kTurnIterations * result_.look.iteration, kShortestTurn, kLongestTurn);
  }
  double VerifyingSeconds() const {
    return live_.start_up() + kTurnsPerLaunch * TurnSeconds() + kToEnd;
  }
  // What verification needs is kept back, once there is something to verify.
  double SearchEnd() const {
    if (!live_.looked()) return begun_ + request_.budget / 2;
    const JobSetting candidate = live_.search().Candidate();
    const bool found = std::any_of(candidate.begin(), candidate.end(),
                                   [](const Config& one) { return !one.IsDefault(); });
    if (!found) return deadline_ - kToEnd;
    return deadline_ -
           std::min(kMostForVerifying * request_.budget, kVerifyingLaunches * VerifyingSeconds());
  }

  void Looked(const job_profile::JobProfile& profile, const JobOffers& offers) {
    result_.look = profile;
    result_.contexts = offers.all;
    Say(profile.Headline());
    // The job still runs, and is ended by us.
    std::erase_if(result_.look.notes, [](const std::string& note) {
      return note.find("not complete") != std::string::npos;
    });
    for (const std::string& note : result_.look.notes) Say("note: " + note);
    size_t candidates = 0;
    for (const SearchContext& one : offers.contexts) candidates += one.offered.size();
    if (offers.contexts.empty()) {
      Say("nothing can be tried in it");
    } else {
      Say(Format("trying {} in {}, in blocks of iterations beside the default",
                 Count(candidates, "pair"), Count(offers.contexts.size(), "context")));
    }
    live_.EndAt(SearchEnd());
  }

  void Note(const Launch& launch) {
    LaunchSummary summary;
    summary.number = launch.number;
    summary.purpose = launch.purpose;
    summary.seconds = launch.seconds;
    summary.status = launch.ended.status;
    summary.ended_by_us = launch.ended.limited;
    summary.log = launch.log;
    result_.launches.push_back(summary);
    agree::RemoveJob(store_, launch.prepared.Variable("DIAPASON_JOB"));
    if (launch.interrupted) result_.interrupted = true;
  }

  Status LookAndSearch() {
    int fruitless = 0;
    while (!live_.over() && fruitless < kFruitless && launches_.left() > kLeastVerifying) {
      const double until = SearchEnd();
      const double needed = live_.start_up() + kLeastSearch;
      if (live_.looked() && SteadySeconds() + needed > until) break;
      const size_t before = live_.looked() ? live_.search().blocks() : 0;
      LaunchPlan plan;
      plan.purpose = live_.looked() ? "search" : "look and search";
      plan.mode = job::JobMode::kTune;
      plan.variables = {{"DIAPASON_JOURNAL_TIMES", "1"}, {"DIAPASON_JOURNAL_TABLES", "1"}};
      plan.limit = std::max(1.0, Left());
      plan.ask_every = kAskWhileSearching;
      plan.enough = [this](const job::PreparedJob& job) { return PollSearch(job); };
      const double limit = until - SteadySeconds();
      live_.Begin(until);
      Result<Launch> launch = launches_.Run(plan);
      live_.End();
      RETURN_IF_ERROR(launch);
      if (!live_.looked() && launch.value().ended.limited && live_.WhyNoLook().empty()) {
        // The time for the look was over.
        launch.value().enough = false;
        launch.value().limit = limit;
      }
      Note(launch.value());
      if (result_.interrupted) return {};
      RETURN_IF_ERROR(CheckSearch(launch.value()));
      fruitless = live_.search().blocks() > before ? 0 : fruitless + 1;
    }
    if (!live_.looked()) return Unavailable("no launch of the command is left to look at it");
    TakeSearch();
    return {};
  }

  bool PollSearch(const job::PreparedJob& job) {
    if (live_.looked() && live_.search().blocks() != judged_blocks_) {
      judged_blocks_ = live_.search().blocks();
      live_.EndAt(SearchEnd());
    }
    return live_.Poll(job, SteadySeconds());
  }

  // What went wrong so badly that nothing can be said about the job.
  Status CheckSearch(const Launch& launch) {
    const std::string trouble = Launches::Trouble(launch);
    if (!live_.looked() && trouble.empty()) live_.LookAtEnd(launch.prepared);
    if (!live_.looked()) {
      if (!trouble.empty()) return Unavailable(trouble);
      if (!live_.WhyNoLook().empty()) return Unavailable(live_.WhyNoLook());
      return Unavailable(
          launch.ended.limited
              ? Format("there were not enough iterations in {}: give it more time (--budget)",
                       DurationText(launch.seconds))
              : "the command has ended before its iterations could be seen: let it run longer");
    }
    if (live_.search().blocks() == 0 && !live_.over()) {
      if (!live_.trouble().empty()) return Unavailable(live_.trouble());
      if (!trouble.empty()) return Unavailable(trouble);
    }
    return {};
  }

  void TakeSearch() {
    const JobSetting best = live_.search().Candidate();
    for (size_t i = 0; i < best.size(); ++i) {
      result_.contexts[i].tried = live_.search().TriedIn(i);
      result_.contexts[i].chosen = best[i];
    }
  }

  Status Conclude() {
    policy::Policy candidate;
    for (const TunedContext& one : result_.contexts) {
      if (one.chosen.IsDefault()) continue;
      candidate.library = one.context.library;
      candidate.rules.push_back(RowOf(one.context, one.chosen));
    }
    if (candidate.rules.empty()) {
      const bool complete = live_.over() && !live_.search().gave_up();
      result_.verdict = complete ? Verdict::kNothingToGain : Verdict::kUndecided;
      if (!complete) {
        result_.why =
            "nothing faster was found in the time there was, and not everything was compared to "
            "the end; give a larger --budget";
      }
      return {};
    }
    candidate.header.origin = "diapason tune -- " + result_.command;
    const std::string path = (std::filesystem::path(request_.output) / "candidate.conf").string();
    RETURN_IF_ERROR(WriteFileAtomically(path, policy::PolicyText(candidate)));
    RETURN_IF_ERROR(Verify(path));
    if (result_.interrupted) return {};
    Judge(candidate);
    if (result_.verdict == Verdict::kFaster && !request_.metric.pattern.empty()) {
      RETURN_IF_ERROR(CompareMetric(path));
    }
    return {};
  }

  bool Confirmed() const {
    return result_.gain.launches >= static_cast<size_t>(kLeastVerifying) && result_.gain.low > 1;
  }
  bool WantsAnother() const {
    const int made = static_cast<int>(result_.verified.size());
    if (made >= kMostVerifying || launches_.left() == 0 || Left() < VerifyingSeconds())
      return false;
    if (made < kVerifyingLaunches) return true;
    return !Confirmed() || result_.gain.high - result_.gain.low > kNarrow * result_.gain.gain;
  }

  Status Verify(const std::string& policy) {
    while (WantsAnother()) {
      const int number = static_cast<int>(result_.verified.size()) + 1;
      LaunchPlan plan;
      plan.purpose = Format("verify {}", number);
      plan.mode = job::JobMode::kCompare;
      plan.policy = policy;
      plan.variables = {{"DIAPASON_JOURNAL_TIMES", "1"},
                        {"DIAPASON_TURN", Format("{}", std::llround(1000 * TurnSeconds()))}};
      plan.limit = std::max(1.0, Left());
      double first_call = 0;
      plan.enough = [this, &first_call, number](const job::PreparedJob& job) {
        return VerifiedEnough(job, number, &first_call);
      };
      ASSIGN_OR_RETURN(const Launch launch, launches_.Run(plan));
      Note(launch);
      if (result_.interrupted) return {};
      const std::string trouble = Launches::Trouble(launch);
      if (!trouble.empty()) return Unavailable("a launch that was to verify: " + trouble);
      RETURN_IF_ERROR(TakeVerified(launch));
    }
    return {};
  }

  bool VerifiedEnough(const job::PreparedJob& job, int number, double* first_call) const {
    const double now = SteadySeconds();
    Progress(Format("verify: launch {}, the default and the policy in turns", number));
    if (*first_call == 0) {
      for (const std::string& path : job.Journals()) {
        JournalWindow window(path);
        if (window.Read().ok() && window.bytes() > 0) *first_call = now;
      }
      return false;
    }
    return now - *first_call > kTurnsPerLaunch * TurnSeconds();
  }

  Status TakeVerified(const Launch& launch) {
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
    Say(Format("launch {}: {}", verified.launch, verified.compared.Text()));
    result_.verified.push_back(std::move(verified));
    result_.gain = PoolLaunches(result_.verified);
    return {};
  }

  // Of the context with most time that the policy changes.
  job_profile::CountedCalls CountedCalls() const {
    for (const TunedContext& one : result_.contexts) {
      if (!one.chosen.IsDefault()) return CountedIn(one);
    }
    return {};
  }

  std::string WhyNotVerified() const {
    for (const VerifyingLaunch& one : result_.verified) {
      if (!one.compared.Decided()) {
        return "too few launches could be compared: " + one.compared.trouble;
      }
    }
    return Format("{} to verify what was found, and {} are needed; give {}",
                  result_.verified.empty() ? "there was no time for a launch"
                                           : "there was time for one launch",
                  kLeastVerifying, launches_.left() == 0 ? "more --launches" : "a larger --budget");
  }

  void Judge(const policy::Policy& candidate) {
    // The picture of where the time went; the verdict does not need it.
    if (result_.gain.launch > 0)
      (void)ProfileSettings(journals_[result_.gain.launch], CountedCalls(), &result_);
    if (Confirmed()) {
      result_.verdict = Verdict::kFaster;
      result_.policy = candidate;
      return;
    }
    if (result_.gain.launches < static_cast<size_t>(kLeastVerifying)) {
      result_.verdict = Verdict::kUndecided;
      result_.why = WhyNotVerified();
      return;
    }
    result_.verdict = Verdict::kNotConfirmed;
    result_.why = "in fresh launches the gain could not be told from none";
  }

  // Whole launches, to the end: what is printed last can be compared only there.
  Status CompareMetric(const std::string& policy) {
    std::vector<std::optional<double>> values[2];
    for (const bool tuned : {false, true, false}) {
      if (launches_.left() == 0 || Left() < 1) break;
      LaunchPlan plan;
      plan.purpose = tuned ? "metric, tuned" : "metric, default";
      plan.mode = tuned ? job::JobMode::kStatic : job::JobMode::kObserve;
      plan.policy = tuned ? policy : "";
      plan.limit = Left();
      plan.enough = [this](const job::PreparedJob&) {
        Progress("metric: the whole command");
        return false;
      };
      ASSIGN_OR_RETURN(const Launch launch, launches_.Run(plan));
      Note(launch);
      if (result_.interrupted) return {};
      // Cut short, it has printed the value of another iteration.
      const bool whole = !launch.ended.limited && launch.ended.status == 0;
      values[tuned].push_back(whole ? launch.metric : std::nullopt);
    }
    result_.metric = JudgeMetric(request_.metric, values[0], values[1]);
    if (result_.metric.verdict == MetricJudgement::Verdict::kUnchanged) return {};
    const bool changed = result_.metric.verdict == MetricJudgement::Verdict::kChanged;
    result_.verdict = changed ? Verdict::kMetricChanged : Verdict::kUndecided;
    result_.why = result_.metric.Text();
    result_.policy.rules.clear();
    return {};
  }

  const Request& request_;
  const Events& events_;
  Launches launches_;
  const double begun_;
  const double deadline_;
  JobTuneResult result_;
  std::string store_;  // set while live_ is made
  LiveSearch live_;
  size_t judged_blocks_ = 0;
  std::map<int, std::vector<std::string>> journals_;  // of verifying launches
};

}  // namespace

Result<JobTuneResult> TuneJob(const Request& request, const Environment& environment,
                              const Events& events) {
  return JobTuner(request, environment, events).Run();
}

}  // namespace diapason::job_tune
