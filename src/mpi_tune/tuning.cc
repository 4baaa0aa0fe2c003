#include "mpi_tune/tuning.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "base/file.h"
#include "base/host_name.h"
#include "base/text.h"
#include "job_tune/launches.h"

namespace diapason::mpi_tune {
namespace {

using job_tune::Launch;
using job_tune::LaunchPlan;
using mpi_profile::MpiProfile;

constexpr double kLeastShare = 0.02;  // of the program's time, for calls to be worth a search
constexpr size_t kMostContexts = 6;
constexpr double kLookShare = 0.25;       // of the budget, after which a program is asked to end
constexpr double kAloneShare = 0.25;      // of the budget
constexpr double kAloneSeconds = 15;      // for one context
constexpr double kFasterAlone = 1.02;     // to be called faster
constexpr size_t kSetsPerDefault = 4;     // launches that one with the default stands for
constexpr double kCloseToDefault = 1.05;  // of its time in one launch, to be tried again
constexpr size_t kFinalists = 2;          // configurations of a context that are tried again
constexpr int kLeastTrials = 11;          // launches before the verification, unless it needs them
constexpr int kFinalRounds = 2;           // launches of each
constexpr int kPairs = 10;                // wanted
constexpr double kBetterInside = 0.98;    // of the default's time in the program, to be chosen
constexpr double kSpare = 1.1;            // launches differ

class Tuner {
 public:
  Tuner(const job_tune::Request& request, const Environment& environment, const Events& events)
      : request_(request), events_(events), launches_(request, environment, events.say) {}

  Result<MpiTuneResult> Run() {
    result_.command = Join(request_.command, " ");
    RETURN_IF_ERROR(Look());
    if (Over()) return std::move(result_);
    if (!FindContexts()) return std::move(result_);
    RETURN_IF_ERROR(Search());
    if (Over()) return std::move(result_);
    RETURN_IF_ERROR(TryInside());
    if (Over() || !Choose()) return std::move(result_);
    RETURN_IF_ERROR(Verify());
    return std::move(result_);
  }

 private:
  void Say(const std::string& text) const {
    if (events_.say) events_.say(text);
  }
  void Progress(const std::string& what) const {
    if (events_.progress) events_.progress(1 - launches_.SecondsLeft() / request_.budget, what);
  }
  bool Over() {
    result_.interrupted = result_.interrupted || (events_.interrupted && events_.interrupted());
    if (result_.interrupted) result_.why = "it was interrupted";
    return result_.interrupted;
  }
  void End(Verdict verdict, std::string why) {
    result_.verdict = verdict;
    result_.why = std::move(why);
  }

  // One launch; with rules if there are rows. None: the user wants to end.
  Result<std::optional<MpiProfile>> Start(const std::string& purpose,
                                          const policy::Policy& policy) {
    LaunchPlan plan;
    plan.purpose = purpose;
    plan.limit = std::min(launches_.SecondsLeft(), request_.budget * kLookShare);
    if (!policy.rules.empty()) {
      plan.mode = job::JobMode::kStatic;
      plan.policy = Format("{}/try-{}.conf", request_.output, launches_.count() + 1);
      RETURN_IF_ERROR(WriteFileAtomically(plan.policy, policy::PolicyText(policy)));
    }
    Progress(purpose);
    ASSIGN_OR_RETURN(const Launch launch, launches_.Run(plan));
    if (launch.interrupted) {
      result_.interrupted = true;
      return std::optional<MpiProfile>();
    }
    if (!launch.Fine()) return Failed(launch);
    cut_ = cut_ || launch.ended.limited;
    const Result<MpiProfile> read = mpi_profile::ReadProfile(launch.prepared.Journals());
    if (!read.ok()) {
      return Unavailable(read.status().message() +
                         "; if its ranks are started by a script that hides LD_PRELOAD from them, "
                         "put `diapason tune --` before the launcher in that script");
    }
    // Iterations that are little of the program do not stand for it; of one that was ended, they
    // are all there is.
    const bool whole = !launch.ended.limited;
    const bool iterates = !whole || read.value().IterationShare() >= mpi_profile::kMostlyIterations;
    const LaunchTimes times{iterates ? read.value().job.iteration : 0,
                            whole ? read.value().program_seconds : 0};
    result_.launches.push_back({launch.number, purpose, launch.seconds, times, launch.log,
                                whole ? launch.metric : std::nullopt});
    return std::optional<MpiProfile>(read.value());
  }

  static Status Failed(const Launch& launch) {
    const std::string how = launch.ended.started
                                ? Format("ended with status {}", launch.ended.status)
                                : launch.ended.trouble;
    return Unavailable(Format("the command {} in launch {} ({}); its output is in {}{}", how,
                              launch.number, launch.purpose, launch.log,
                              launch.tail.empty() ? "" : ", and ends with: " + launch.tail));
  }

  // A rank that does not find the rules file uses Open MPI's own choice, without a message; where
  // its algorithm differs from that of the other ranks, the program hangs.
  Status AllRanksShareTheFolder() const {
    const size_t missing = result_.profile.missing;
    if (missing == 0) return {};
    return Unavailable(
        Format("{} of {} ranks left no recording in '{}' (host {} sees the others): the hosts do "
               "not share this folder, "
               "and would not find the rules file in it; give -o a folder on a file system that "
               "all hosts share",
               missing, missing + result_.profile.ranks, request_.output, HostName()));
  }

  Status Look() {
    ASSIGN_OR_RETURN(std::optional<MpiProfile> seen, Start("look", {}));
    if (!seen.has_value()) return {};
    result_.profile = *std::move(seen);
    Say(result_.profile.Headline());
    Say(result_.profile.ShareText());
    if (!result_.profile.open_mpi) {
      return Unavailable("the program's library is '" + result_.profile.library.substr(0, 60) +
                         "': its calls can be recorded (diapason run --observe), but only Open "
                         "MPI's algorithms can be chosen");
    }
    RETURN_IF_ERROR(AllRanksShareTheFolder());
    Say(result_.profile.RulesText());
    if (cut_) {
      result_.notes.emplace_back(
          "the program does not end within a quarter of the budget: only its iterations are "
          "compared, not the whole program");
      if (result_.profile.job.iteration <= 0) {
        return Unavailable(
            "the program does not end within a quarter of the budget and shows no iterations: give "
            "a larger --budget, or a shorter input");
      }
    }
    return {};
  }

  bool FindContexts() {
    for (const Context& one : ContextsOf(result_.profile, kLeastShare, kMostContexts)) {
      result_.contexts.push_back({one, {}, {}, {}});
    }
    if (!result_.contexts.empty()) return true;
    End(Verdict::kNothingToGain,
        Format("no call that rules can change takes {:.0f} % of the program's time or more",
               100 * kLeastShare));
    return false;
  }

  std::vector<Context> Contexts() const {
    std::vector<Context> contexts;
    for (const TunedContext& one : result_.contexts) contexts.push_back(one.context);
    return contexts;
  }

  Status Search() {
    const std::vector<Context> contexts = Contexts();
    const double seconds = std::min(request_.budget * kAloneShare,
                                    kAloneSeconds * static_cast<double>(contexts.size()));
    Say(Format("searching {} alone, for {:.0f} s", Count(contexts.size(), "call"), seconds));
    ASSIGN_OR_RETURN(const std::vector<AloneFinding> findings,
                     SearchAlone(contexts, seconds, [this] {
                       Progress("search");
                       return !Over();
                     }));
    for (size_t i = 0; i < findings.size(); ++i) {
      result_.contexts[i].alone = findings[i];
      const bool faster = !findings[i].ranked.empty() && findings[i].ranked[0].gain >= kFasterAlone;
      const std::string best = faster ? Format("{}, {:.2f} x alone",
                                               ConfigText(Library::kOpenMpi, contexts[i].collective,
                                                          findings[i].ranked[0].config),
                                               findings[i].ranked[0].gain)
                                      : std::string("nothing faster alone");
      Say(contexts[i].Text() + ": " + (findings[i].why.empty() ? best : findings[i].why));
    }
    return {};
  }

  // The n-th best of every context alone; the default where there is none.
  std::vector<Config> Set(size_t n) const {
    std::vector<Config> configs;
    for (const TunedContext& one : result_.contexts) {
      configs.push_back(n < one.alone.ranked.size() ? one.alone.ranked[n].config : Config{});
    }
    return configs;
  }

  // How many launches may be spent before the verification, which needs most of them.
  int Affordable() const {
    const double each = result_.launches[0].seconds * kSpare;
    const int by_time = static_cast<int>(launches_.SecondsLeft() / each) - 2 * kPairs;
    return std::min(by_time, launches_.left() - kept_launches_);
  }

  // What is best alone is not always best in the program: as many configurations as launches allow
  // are tried there once, in the order of their times alone, and the best of them again.
  Status TryInside() {
    const int for_pairs = launches_.left() - kLeastTrials;
    kept_launches_ = std::clamp(for_pairs, 2 * kPairs, 2 * static_cast<int>(kMostPairs));
    Trials screening(result_.contexts.size());
    RETURN_IF_ERROR(Screen(&screening));
    Trials finals(result_.contexts.size());
    for (int round = 0; round < kFinalRounds && !result_.interrupted; ++round) {
      for (size_t n = 0; n < kFinalists; ++n) {
        const std::vector<Config> set = screening.Best(n, kCloseToDefault);
        if (AllDefault(set) || Affordable() < (n == 0 ? 2 : 1)) break;
        if (n == 0) RETURN_IF_ERROR(Try("default", Set(SIZE_MAX), &finals));
        RETURN_IF_ERROR(Try(Format("number {} in the program", n + 1), set, &finals));
      }
    }
    const bool again = !AllDefault(finals.Best(0, HUGE_VAL));
    chosen_ = (again ? finals : screening).Best(0, kBetterInside);
    const std::vector<std::vector<InProgram>> tried = FinalsFirst(finals, screening);
    for (size_t i = 0; i < tried.size(); ++i) result_.contexts[i].tried = tried[i];
    return {};
  }

  Status Screen(Trials* screening) {
    // The look is a launch with the default as well.
    screening->Add(Set(SIZE_MAX), CallSeconds(result_.profile, Contexts()));
    const int finals = kFinalRounds * (1 + static_cast<int>(kFinalists));
    for (size_t n = 0; !AllDefault(Set(n)) && !result_.interrupted; ++n) {
      // The best alone is tried in any case, and compared with the look if there is no more room.
      const bool with_default = n % kSetsPerDefault == 0;
      const int room = Affordable() - finals;
      if (n > 0 && room < (with_default ? 2 : 1)) break;
      if (with_default && (n > 0 || Affordable() > 1)) {
        RETURN_IF_ERROR(Try("default", Set(SIZE_MAX), screening));
      }
      RETURN_IF_ERROR(Try(Format("number {} alone", n + 1), Set(n), screening));
    }
    return {};
  }

  Status Try(const std::string& purpose, const std::vector<Config>& set, Trials* trials) {
    if (Over()) return {};
    const Result<std::optional<MpiProfile>> seen =
        Start(purpose, PolicyOf(Contexts(), set, nullptr));
    if (!seen.ok()) {
      // An algorithm that does not work in the program is no reason to give up the others.
      if (AllDefault(set)) return seen.status();
      result_.notes.push_back("left out: " + seen.status().message());
      return {};
    }
    if (seen.value().has_value()) trials->Add(set, CallSeconds(*seen.value(), Contexts()));
    return {};
  }

  bool Choose() {
    for (size_t i = 0; i < chosen_.size(); ++i) result_.contexts[i].chosen = chosen_[i];
    if (!AllDefault(chosen_)) return true;
    End(Verdict::kNothingToGain, "no configuration made these calls faster in the program");
    return false;
  }

  Status Verify() {
    std::vector<std::string> remarks;
    const policy::Policy policy = PolicyOf(Contexts(), chosen_, &remarks);
    const double each = 2 * result_.launches[0].seconds * kSpare;
    const int pairs = std::min({static_cast<int>(kMostPairs), launches_.left() / 2,
                                static_cast<int>(launches_.SecondsLeft() / each)});
    if (pairs < static_cast<int>(kLeastPairs)) {
      End(Verdict::kUndecided,
          Format("a verification needs {} pairs of launches, and {} are left: give a larger "
                 "--budget or more --launches",
                 kLeastPairs, std::max(pairs, 0)));
      return {};
    }
    Comparison& compared = result_.compared;
    compared.most = static_cast<size_t>(pairs);
    std::vector<std::optional<double>> metrics[2];
    for (int pair = 0; pair < pairs; ++pair) {
      for (int i = 0; i < 2; ++i) {
        // In turns, and each is first as often as the other.
        const bool tuned = (i == 0) == (pair % 2 == 1);
        ASSIGN_OR_RETURN(const std::optional<MpiProfile> seen,
                         Start(Format("verify {}, {}", pair + 1, tuned ? "rules" : "default"),
                               tuned ? policy : policy::Policy{}));
        if (!seen.has_value()) {
          Over();
          return {};
        }
        (tuned ? compared.tuned : compared.defaults).push_back(result_.launches.back().times);
        metrics[tuned].push_back(result_.launches.back().metric);
      }
      if (pair + 1 < std::min(kPairs, pairs)) continue;
      compared.Judge();
      if (compared.Confirmed() || compared.Hopeless()) break;
    }
    if (!compared.Confirmed()) {
      End(Verdict::kNotConfirmed,
          "pairs of launches did not confirm that the program is faster: the default stays");
      return {};
    }
    if (!MetricStays(metrics[0], metrics[1])) return {};
    result_.verdict = Verdict::kFaster;
    result_.policy = policy;
    result_.remarks = std::move(remarks);
    return {};
  }

  bool MetricStays(const std::vector<std::optional<double>>& by_default,
                   const std::vector<std::optional<double>>& tuned) {
    using MetricVerdict = job_tune::MetricJudgement::Verdict;
    if (request_.metric.pattern.empty()) return true;
    result_.metric = job_tune::JudgeMetric(request_.metric, by_default, tuned);
    if (result_.metric.verdict == MetricVerdict::kUnchanged) return true;
    End(result_.metric.verdict == MetricVerdict::kChanged ? Verdict::kMetricChanged
                                                          : Verdict::kUndecided,
        result_.metric.Text());
    return false;
  }

  const job_tune::Request request_;
  const Events events_;
  job_tune::Launches launches_;
  MpiTuneResult result_;
  int kept_launches_ = 0;       // for the verification
  std::vector<Config> chosen_;  // by context
  bool cut_ = false;            // a launch was ended by its limit
};

}  // namespace

std::string MpiTuneResult::Headline() const {
  if (verdict != Verdict::kFaster) return std::string(VerdictName(verdict)) + ": " + why;
  const PairGain& deciding = compared.Deciding();
  std::string text = Format("{} is {:.3f} x as fast [{:.3f}, {:.3f}] in {} pairs of launches",
                            compared.iteration.gain > 0 ? "an iteration" : "the program",
                            deciding.gain, deciding.low, deciding.high, deciding.pairs);
  if (compared.iteration.gain > 0 && compared.program.gain > 0) {
    text += Format("; the whole program {:.3f} x [{:.3f}, {:.3f}]", compared.program.gain,
                   compared.program.low, compared.program.high);
  }
  return text;
}

Result<MpiTuneResult> TuneMpi(const job_tune::Request& request, const Environment& environment,
                              const Events& events) {
  return Tuner(request, environment, events).Run();
}

}  // namespace diapason::mpi_tune
