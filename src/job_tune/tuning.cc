#include "job_tune/tuning.h"

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "job_tune/launch_tuning.h"
#include "job_tune/live_search.h"
#include "job_tune/tuning_run.h"
#include "job_tune/verify_turns.h"
#include "policy/policy.h"

namespace diapason::job_tune {
namespace {

constexpr int kLeastVerifying = 2;  // launches that the search inside the job leaves
// The same where calls are captured: a few to try something, and three pairs to verify it.
constexpr int kLeastByLaunches = 10;
// Launches that have to fit into the budget where they are timed as a whole.
constexpr double kWholeLaunches = 9;
constexpr double kLeastSearch = 3;  // seconds in a launch
constexpr double kMostLook = 60;
constexpr int kFruitless = 2;  // launches in which the search does not get on
constexpr std::chrono::milliseconds kAskWhileSearching{5};
// Of the time that is left after the look: the search inside the job, where others have to be tried
// by launches.
constexpr double kLeastInside = 0.2;
constexpr double kMostInside = 0.5;

class JobTuner {
 public:
  JobTuner(const Request& request, const Environment& environment, const Events& events)
      : run_(request, environment, events), live_(SearchOptions()) {}

  Result<JobTuneResult> Run() {
    SayBefore();
    RETURN_IF_ERROR(LookAndSearch());
    if (!result_.interrupted) RETURN_IF_ERROR(TryByLaunches());
    if (!result_.interrupted) RETURN_IF_ERROR(Conclude());
    if (Launches::interrupted()) result_.interrupted = true;
    if (result_.interrupted) {
      // Nothing is confirmed before everything was done.
      result_.verdict = Verdict::kUndecided;
      result_.policy.rules.clear();
    }
    result_.seconds = SteadySeconds() - run_.begun();
    return std::move(result_);
  }

 private:
  void SayBefore() {
    const int most = run_.launches().most();
    const std::string graphs =
        run_.request().most_launches > 0
            ? ""
            : Format(", {} times if its calls are captured in CUDA graphs", kMostWithGraphs);
    run_.Say(
        Format("the command is started {} times at most{}, within {}; DIAPASON_LAUNCH is set in it",
               most, graphs, DurationText(run_.request().budget)));
  }

  LiveSearchOptions SearchOptions() {
    LiveSearchOptions options;
    options.store = run_.store();
    options.look_limit = std::min(kMostLook, run_.request().budget / 3);
    options.whole_limit = run_.request().budget / kWholeLaunches;
    options.looked = [this](const job_profile::JobProfile& profile, const JobOffers& offers) {
      Looked(profile, offers);
    };
    options.progress = [this](const std::string& text) { run_.Progress("search: " + text); };
    return options;
  }

  double SearchEnd() const {
    if (!live_.looked()) return run_.begun() + run_.request().budget / 2;
    if (inside_end_ > 0) return inside_end_;
    const JobSetting candidate = live_.search().Candidate();
    const bool found = std::any_of(candidate.begin(), candidate.end(),
                                   [](const Config& one) { return !one.IsDefault(); });
    return run_.deadline() - TurnVerifier::SecondsToKeep(run_.request().budget, found,
                                                         result_.look.iteration, live_.start_up());
  }

  void Looked(const job_profile::JobProfile& profile, const JobOffers& offers) {
    result_.look = profile;
    result_.contexts = offers.all;
    result_.shares = offers.shares;
    by_launches_ = offers.by_launches;
    run_.Say(profile.Headline());
    for (const std::string& note : result_.look.notes) run_.Say("note: " + note);
    for (const std::string& text : {offers.shares.ByLaunchesText(), offers.shares.UntriedText()}) {
      if (!text.empty()) run_.Say(text);
    }
    size_t candidates = 0;
    for (const SearchContext& one : offers.contexts) candidates += one.offered.size();
    if (!offers.contexts.empty()) {
      run_.Say(Format("trying {} in {}, in blocks of iterations beside the default",
                      Count(candidates, "pair"), Count(offers.contexts.size(), "context")));
    } else if (by_launches_.empty()) {
      run_.Say("nothing can be tried in it");
    }
    if (!by_launches_.empty()) {
      run_.launches().AllowForGraphs();
      const double inside = std::clamp(1 - offers.shares.by_launches - offers.shares.untried,
                                       kLeastInside, kMostInside);
      inside_end_ = SteadySeconds() + inside * run_.Left();
    }
    live_.EndAt(SearchEnd());
  }

  bool RoomInside() const {
    return run_.launches().left() > (by_launches_.empty() ? kLeastVerifying : kLeastByLaunches);
  }

  Status LookAndSearch() {
    int fruitless = 0;
    while (!live_.over() && fruitless < kFruitless && RoomInside()) {
      const double until = SearchEnd();
      const double needed = live_.start_up() + kLeastSearch;
      if (live_.looked() && SteadySeconds() + needed > until) break;
      const size_t before = live_.looked() ? live_.search().blocks() : 0;
      LaunchPlan plan;
      plan.purpose = live_.looked() ? "search" : "look and search";
      plan.mode = job::JobMode::kTune;
      plan.variables = {{"DIAPASON_JOURNAL_TIMES", "1"}, {"DIAPASON_JOURNAL_TABLES", "1"}};
      plan.limit = std::max(1.0, run_.Left());
      plan.ask_every = kAskWhileSearching;
      plan.enough = [this](const job::PreparedJob& job) { return PollSearch(job); };
      const double limit = until - SteadySeconds();
      live_.Begin(until);
      Result<Launch> launch = run_.Start(plan);
      live_.End();
      RETURN_IF_ERROR(launch);
      if (!live_.looked() && launch.value().ended.limited && live_.WhyNoLook().empty()) {
        // The time for the look was over.
        launch.value().enough = false;
        launch.value().limit = limit;
      }
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
    // Replays of graphs are silent: that is no hang.
    const bool graphs = launch.Fine() && live_.graphs_alone();
    if (!live_.looked() && (trouble.empty() || graphs)) {
      live_.LookAtEnd(launch.prepared, !launch.ended.limited);
    }
    if (!live_.looked()) {
      if (!trouble.empty() && !graphs) return Unavailable(trouble);
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
      TunedContext& one = result_.contexts[i];
      one.tried = live_.search().TriedIn(i);
      one.chosen = best[i];
      const bool any = std::any_of(one.tried.begin(), one.tried.end(),
                                   [](const TriedConfig& tried) { return tried.blocks > 0; });
      if (!any && i < live_.search().current()) {
        one.untried =
            "no other configuration took effect: its communicators end after a few calls, or the "
            "ranks cannot follow";
      }
    }
    complete_ = live_.over() && !live_.search().gave_up();
  }

  // Calls that are captured in graphs keep what they were captured with.
  Status TryByLaunches() {
    const LaunchTiming timing = TimingOf(result_.look, result_.contexts);
    result_.whole_launches = timing.whole;
    by_pairs_ = std::make_unique<LaunchTuner>(&run_, timing, live_.start_up());
    if (by_launches_.empty()) return {};
    if (timing.whole) {
      run_.Say(
          "nothing in the journals shows iterations: whole launches are timed, from the first call "
          "to the end; call diapason_step() once per iteration (diapason.step() in Python) for "
          "shorter launches");
    }
    const size_t first = live_.search().contexts().size();
    RETURN_IF_ERROR(by_pairs_->Search(by_launches_, first));
    complete_ = complete_ && by_pairs_->complete();
    return {};
  }

  // Turns inside a launch do not change what is captured.
  bool NeedsPairs() const {
    return std::any_of(result_.contexts.begin(), result_.contexts.end(), [](const auto& one) {
      return !one.chosen.IsDefault() && (one.by_launches || one.also_captured);
    });
  }

  Status Conclude() {
    policy::Policy candidate;
    for (const TunedContext& one : result_.contexts) {
      if (one.chosen.IsDefault()) continue;
      candidate.library = one.context.library;
      candidate.rules.push_back(RowOf(one.context, one.chosen));
    }
    if (candidate.rules.empty()) {
      result_.verdict = complete_ ? Verdict::kNothingToGain : Verdict::kUndecided;
      if (!complete_) {
        result_.why =
            "nothing faster was found in the time there was, and not everything was compared to "
            "the end; give " +
            (by_launches_.empty() ? "a larger --budget" : by_pairs_->WhatWouldDo());
      }
      return {};
    }
    candidate.header.origin = "diapason tune -- " + result_.command;
    const std::string path =
        (std::filesystem::path(run_.request().output) / "candidate.conf").string();
    RETURN_IF_ERROR(WriteFileAtomically(path, policy::PolicyText(candidate)));
    if (NeedsPairs()) {
      RETURN_IF_ERROR(VerifyAndJudge(by_pairs_.get(), path, candidate));
    } else {
      TurnVerifier in_turns(&run_, live_.start_up());
      RETURN_IF_ERROR(VerifyAndJudge(&in_turns, path, candidate));
    }
    if (result_.verdict == Verdict::kFaster && !run_.request().metric.pattern.empty()) {
      RETURN_IF_ERROR(CompareMetric(path));
    }
    return {};
  }

  template <typename Verifier>
  Status VerifyAndJudge(Verifier* verifier, const std::string& path,
                        const policy::Policy& candidate) {
    RETURN_IF_ERROR(verifier->Verify(path));
    if (result_.interrupted) return {};
    verifier->Picture();
    result_.why = verifier->WhyUndecided();
    if (verifier->Confirmed()) {
      result_.verdict = Verdict::kFaster;
      result_.policy = candidate;
    } else if (!result_.why.empty()) {
      result_.verdict = Verdict::kUndecided;
    } else {
      result_.verdict = Verdict::kNotConfirmed;
      result_.why = "in fresh launches the gain could not be told from none";
    }
    return {};
  }

  // Whole launches, to the end: what is printed last can be compared only there.
  Status CompareMetric(const std::string& policy) {
    std::vector<std::optional<double>> values[2];
    for (const bool tuned : {false, true, false}) {
      if (run_.launches().left() == 0 || run_.Left() < 1) break;
      LaunchPlan plan;
      plan.purpose = tuned ? "metric, tuned" : "metric, default";
      plan.mode = tuned ? job::JobMode::kStatic : job::JobMode::kObserve;
      plan.policy = tuned ? policy : "";
      plan.limit = run_.Left();
      plan.enough = [this](const job::PreparedJob&) {
        run_.Progress("metric: the whole command");
        return false;
      };
      ASSIGN_OR_RETURN(const Launch launch, run_.Start(plan));
      if (result_.interrupted) return {};
      // Cut short, it has printed the value of another iteration.
      const bool whole = !launch.ended.limited && launch.ended.status == 0;
      values[tuned].push_back(whole ? launch.metric : std::nullopt);
    }
    const MetricRequest& metric = run_.request().metric;
    result_.metric = JudgeMetric(metric, values[0], values[1]);
    if (result_.metric.verdict == MetricJudgement::Verdict::kUnchanged) return {};
    const bool changed = result_.metric.verdict == MetricJudgement::Verdict::kChanged;
    result_.verdict = changed ? Verdict::kMetricChanged : Verdict::kUndecided;
    result_.why = result_.metric.Text();
    result_.policy.rules.clear();
    return {};
  }

  TuningRun run_;
  JobTuneResult& result_ = run_.result;
  LiveSearch live_;
  std::vector<SearchContext> by_launches_;
  double inside_end_ = 0;  // of the search inside the job, where others are tried by launches
  std::unique_ptr<LaunchTuner> by_pairs_;
  bool complete_ = false;  // everything was compared to the end
  size_t judged_blocks_ = 0;
};

}  // namespace

Result<JobTuneResult> TuneJob(const Request& request, const Environment& environment,
                              const Events& events) {
  return JobTuner(request, environment, events).Run();
}

}  // namespace diapason::job_tune
