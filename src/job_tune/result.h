#pragma once

#include <optional>
#include <string>
#include <vector>

#include "domain/decision.h"
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
};

// The row of a policy for a context: its whole band of sizes, in communicators of its shape.
policy::Rule RowOf(const JobContext& context, const Config& config);

// One configuration of a context, judged by whole iterations.
struct TriedConfig {
  Config config;
  // How many times as fast an iteration was as beside it with the library's own choice in this
  // context; an interval of 95 %. 0: it was not measured.
  double gain = 0;
  double low = 0;
  double high = 0;
  size_t blocks = 0;
  bool by_launches = false;  // compared between launches, not inside one
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
};

// A fresh launch in which the default and the policy took turns.
struct VerifyingLaunch {
  int launch = 0;  // its number
  job_profile::TurnComparison compared;
};

struct LaunchSummary {
  int number = 0;
  std::string purpose;
  double seconds = 0;
  int status = 0;
  bool ended_by_us = false;
  std::string log;
};

// The gain of the iteration, over all verifying launches.
struct PooledGain {
  size_t launches = 0;
  size_t changes = 0;  // of turns
  double gain = 0;     // 0: not known
  double low = 0;      // 95 %: launches differ, and that is part of it
  double high = 0;
  double default_seconds = 0;  // the median launch's
  double tuned_seconds = 0;
};
PooledGain PoolLaunches(const std::vector<VerifyingLaunch>& launches);

enum class Verdict {
  kFaster,         // confirmed: the policy has rows
  kNothingToGain,  // tried, and nothing was faster
  kNotConfirmed,   // the search found something, fresh launches did not confirm it
  kMetricChanged,  // it was faster, and the metric changed
  kUndecided,      // there was not enough time, or too few iterations: no policy
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
  std::vector<VerifyingLaunch> verified;
  PooledGain gain;
  MetricJudgement metric;
  std::vector<LaunchSummary> launches;
  double seconds = 0;  // from the command to this result
  bool interrupted = false;
};

}  // namespace diapason::job_tune
