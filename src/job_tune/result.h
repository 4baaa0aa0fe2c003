#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "domain/decision.h"
#include "job_profile/counted.h"
#include "job_profile/job_profile.h"
#include "job_profile/turns.h"
#include "job_tune/metric.h"
#include "policy/policy.h"

// What tuning a job has found: plain values, which text, JSON and report are made of.
namespace diapason::job_tune {

// The calls that one row of a policy can decide about: one collective in one band of sizes, in
// communicators of one shape.
struct JobContext {
  Library library = Library::kNccl;
  Collective collective = Collective::kAllReduce;
  int band = 0;  // SizeBand
  Shape shape;
  friend bool operator==(const JobContext&, const JobContext&) = default;
  // "allreduce up to 32KiB, 4 ranks on 1 node".
  std::string Text() const;
  // Whether a call of a communicator is one of them; `of`: the number of its collective.
  bool Has(Library used, const Shape& ranks, uint8_t of, uint64_t bytes) const;
};

struct TunedContext;
// Its calls, and how many an iteration has; per_iteration is 0 where that is no whole number.
job_profile::CountedCalls CountedIn(const TunedContext& context);

// The row of a policy for a context: its whole band of sizes, in communicators of its shape.
policy::Rule RowOf(const JobContext& context, const Config& config);

// A block of iterations with one configuration, beside a block with the library's own choice.
struct TriedBlock {
  double seconds = 0;  // of an iteration
  double default_seconds = 0;
};

// One configuration of a context, judged by whole iterations.
struct TriedConfig {
  Config config;
  // How many times as fast an iteration was as beside it with the library's own choice in this
  // context; an interval of 95 %. 0: it was not measured.
  double gain = 0;
  double low = 0;
  double high = 0;
  size_t blocks = 0;
  std::vector<TriedBlock> times;  // of the blocks, where they are known
};

struct TunedContext {
  JobContext context;
  uint64_t least_bytes = 0;
  uint64_t most_bytes = 0;
  double calls_per_iteration = 0;
  double seconds = 0;              // of an iteration, as in the look
  std::vector<TriedConfig> tried;  // the fastest first
  Config chosen;                   // default: the library's own stays
  std::string untried;             // why nothing could be tried; "" if something was
  // Most of its calls are captured in graphs, which keep what they were captured with: what is
  // tried needs a launch of its own.
  bool by_launches = false;
  // Some are, so that turns inside a launch do not show what a row does.
  bool also_captured = false;
  // Its calls are in no journal when graphs are replayed: calls_per_iteration is what one rank has
  // captured.
  bool unseen = false;
};

// Of what an iteration spends in collectives: the parts that cannot be tried inside a launch.
struct LookShares {
  // What shares are of. Captured calls are not timed: their time is taken from calls of the same
  // kind that were, or from the library's own estimates.
  enum class Of { kTime, kEstimatedTime, kCalls };
  Of of = Of::kTime;
  double by_launches = 0;  // captured in graphs
  double untried = 0;      // not at all: no tuner is asked, or ranks cannot count the calls
  std::vector<std::string> reasons;  // of the latter, those with the largest part first

  // Sentences for the user; "" where there is nothing to say.
  std::string ByLaunchesText() const;
  std::string UntriedText() const;
};

// A fresh launch in which the default and the policy took turns.
struct VerifyingLaunch {
  int launch = 0;  // its number
  job_profile::TurnComparison compared;
};

// Two fresh launches one after the other, one with the default and one with the policy.
struct VerifyingPair {
  int default_launch = 0;  // their numbers
  int policy_launch = 0;
  double default_seconds = 0;  // of an iteration, or of a whole launch; 0: it could not be timed
  double policy_seconds = 0;
  size_t default_iterations = 0;  // 0: whole launches
  size_t policy_iterations = 0;
  std::string trouble;  // why it does not count
  bool Decided() const { return default_seconds > 0 && policy_seconds > 0; }
};

struct LaunchSummary {
  int number = 0;
  std::string purpose;
  double seconds = 0;
  int status = 0;
  bool ended_by_us = false;
  std::string log;
};

// The gain of the iteration, over all verifying launches that can tell it.
//
// The gain of one job differs from launch to launch, by more than the turns inside a launch show:
// other placement, other channels, other neighbours. So the launches are the sample, and what each
// of them found in its turns is one figure with an error of its own (random effects; weights by
// both; the interval by the launches' own spread with Student's distribution, which holds for as
// few as two). Two launches that happen to agree do not make it narrower than the turns of all of
// them allow.
struct PooledGain {
  // Pairs of launches were compared with each other, not turns inside launches: what is said of
  // launches here is of pairs then, and there are no changes of turns.
  bool by_pairs = false;
  size_t launches = 0;   // that count
  size_t undecided = 0;  // that do not: they had too few turns
  size_t changes = 0;    // of turns, in those that count
  double gain = 0;       // 0: not known
  // 95 %: of the mean gain of launches to come.
  double low = 0;
  double high = 0;
  // 95 %: of what one further launch like these would find.
  double next_low = 0;
  double next_high = 0;
  // The standard deviation of launches' log gains beyond what their turns explain: an estimate, or,
  // of one launch alone, what is assumed (kAssumedSpread).
  double spread = 0;
  int launch = 0;              // the number of the one with the median gain,
  int default_launch = 0;      // that of its default: the same unless pairs were compared,
  double default_seconds = 0;  // and the times of its iterations
  double tuned_seconds = 0;

  // One launch does not show by how much launches differ. On one GPU four pairs of launches of one
  // training job under one policy had gains of 0.98 to 1.05, a standard deviation of 3 %; between
  // such pairs also lies what turns inside a launch do not see, so that this is rather too much.
  static constexpr double kAssumedSpread = 0.03;
};
PooledGain PoolLaunches(const std::vector<VerifyingLaunch>& launches);
// The interval is Student's over the logarithms of the pairs' gains.
PooledGain PoolPairs(const std::vector<VerifyingPair>& pairs);

// "3 fresh launches", "3 pairs of fresh launches".
std::string LaunchesText(const PooledGain& gain);

enum class Verdict {
  kFaster,         // confirmed: the policy has rows
  kNothingToGain,  // tried, and nothing was faster
  kNotConfirmed,   // the search found something, fresh launches did not confirm it
  kMetricChanged,  // it was faster, and the metric changed
  kUndecided,      // there was not enough time, or too few iterations: no policy
};

// "faster", "nothing to gain", "not confirmed", "metric changed", "undecided".
std::string_view VerdictName(Verdict verdict);

// What was written (leave.h); "" for what was not.
struct LeftFiles {
  std::string folder;
  std::string policy;     // confirmed rows
  std::string previous;   // the policy of an earlier run, which `policy` has replaced
  std::string untouched;  // the policy of an earlier run, which was left: nothing was confirmed
  std::string result;
  std::string measurements;
  std::string report;
};

struct JobTuneResult {
  std::string command;  // as the user typed it
  Verdict verdict = Verdict::kUndecided;
  std::string why;  // a sentence: the reason of the verdict where there is one to give
  job_profile::JobProfile look;
  // Of the iterations in each setting, from the verifying launches; without calls if there is none.
  job_profile::JobProfile by_default;
  job_profile::JobProfile tuned;
  std::vector<TunedContext> contexts;  // those with most time first
  policy::Policy policy;               // confirmed rows
  LookShares shares;
  std::vector<VerifyingLaunch> verified;  // in turns
  std::vector<VerifyingPair> pairs;       // between launches
  // What was timed are launches from the first call to their end: nothing shows their iterations.
  bool whole_launches = false;
  PooledGain gain;
  MetricJudgement metric;
  std::vector<LaunchSummary> launches;
  double seconds = 0;  // from the command to this result
  bool interrupted = false;
  LeftFiles files;

  // "an iteration takes 8.5 ms", "a launch takes 12.3 s".
  std::string TakesText(double length) const;
  std::string TimeText(double length) const;
  // The verdict in one sentence: "an iteration takes 8.5 ms by default and 5.9 ms tuned: ...".
  std::string Headline() const;
  // What could not be tried and why, a sentence each.
  std::vector<std::string> Untried() const;
  // The command line that runs the job with the policy; "" if there is none.
  std::string UseCommand() const;
};

// The profiles of both settings (JobTuneResult::by_default and tuned) from the journals of one
// verifying launch: that of PooledGain::launch, so that picture and headline are of the same one.
// `counted`: calls whose number per iteration the look has found.
Status ProfileSettings(const std::vector<std::string>& journals,
                       const job_profile::CountedCalls& counted, JobTuneResult* result);
// The same from the journals of two launches, one of each setting.
Status ProfilePair(const std::vector<std::string>& default_journals,
                   const std::vector<std::string>& policy_journals, JobTuneResult* result);

// The document of `tune -- COMMAND --json`, and result.json: all figures.
std::string ResultJson(const JobTuneResult& result);

}  // namespace diapason::job_tune
