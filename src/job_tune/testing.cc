#include "job_tune/testing.h"

#include <cmath>

#include "base/sign_flip.h"
#include "domain/schedule.h"

namespace diapason::job_tune::testing {
namespace {

using job_profile::CallClass;
using job_profile::JobProfile;

constexpr Config kTree{0, 2, 0, 0};
constexpr Config kRing{1, 0, 4, 0};

CallClass Class(Collective collective, uint64_t bytes, double calls, double total, double exposed) {
  CallClass one;
  one.collective = static_cast<uint8_t>(collective);
  one.band = SizeBand(bytes);
  one.least_bytes = one.most_bytes = bytes;
  one.calls = 1000;
  one.calls_per_iteration = calls;
  one.times.total = total;
  one.times.exposed = one.times.exposed_low = one.times.exposed_high = exposed;
  return one;
}

JobProfile Profile(double iteration, double allreduce, double allgather, double hidden) {
  JobProfile profile;
  job_profile::Role role;
  role.library_version = 22809;
  role.shape = {1, 4};
  role.name = "tensor";
  role.communicators = 1;
  profile.roles.push_back(role);
  profile.classes.push_back(Class(Collective::kAllReduce, 32768, 32, allreduce, allreduce));
  profile.classes.push_back(
      Class(Collective::kAllGather, 1 << 20, 2, allgather, allgather - hidden));
  profile.source = job_profile::Source::kOrder;
  profile.has_times = true;
  profile.iterations = 240;
  profile.iteration = iteration;
  profile.times.total = allreduce + allgather;
  profile.times.exposed = profile.times.total - hidden;
  profile.calls = 8160;
  return profile;
}

VerifyingLaunch Launch(int number, double gain, size_t changes) {
  VerifyingLaunch launch{number, {}};
  job_profile::TurnComparison& compared = launch.compared;
  compared.rank = "rank 0";
  compared.source = job_profile::Source::kOrder;
  compared.default_iterations = compared.policy_iterations = 20 * changes;
  compared.mixed_iterations = changes;
  for (size_t i = 0; i < changes; ++i) {
    // Spread evenly, in an order that is not that of their size.
    const double place = static_cast<double>(i * 5 % changes) / static_cast<double>(changes - 1);
    compared.log_gains.push_back(std::log(gain) + 0.02 * (place - 0.5));
  }
  const ShiftEstimate shift = EstimateShift(compared.log_gains);
  compared.gain = std::exp(shift.estimate);
  compared.low = std::exp(shift.low);
  compared.high = std::exp(shift.high);
  compared.default_seconds = 8.5e-3;
  compared.policy_seconds = 8.5e-3 / gain;
  if (!compared.Decided()) compared.trouble = "the turns changed over too seldom";
  return launch;
}

TriedConfig Tried(const Config& config, double gain, size_t blocks) {
  TriedConfig tried;
  tried.config = config;
  tried.gain = gain;
  tried.low = gain * 0.98;
  tried.high = gain * 1.02;
  tried.blocks = blocks;
  for (size_t i = 0; i < blocks; ++i) {
    tried.times.push_back({8.5e-3 / gain * (1 + 0.001 * static_cast<double>(i)), 8.5e-3});
  }
  return tried;
}

void AddContexts(JobTuneResult* result) {
  TunedContext first;
  first.context = {Library::kNccl, Collective::kAllReduce, SizeBand(32768), {1, 4}};
  first.least_bytes = first.most_bytes = 32768;
  first.calls_per_iteration = 32;
  first.seconds = 5.1e-3;
  first.tried = {Tried(kTree, 1.41, 6), Tried(kRing, 1.06, 4), Tried({1, 2, 0, 0}, 0.93, 3)};
  first.chosen = kTree;
  result->contexts.push_back(first);
  TunedContext second = first;
  second.context.collective = Collective::kAllGather;
  second.context.band = SizeBand(1 << 20);
  second.least_bytes = second.most_bytes = 1 << 20;
  second.calls_per_iteration = 2;
  second.seconds = 0.9e-3;
  second.tried.clear();
  second.chosen = {};
  second.untried = "groups of several calls, of library 2.29 and later";
  result->contexts.push_back(second);
}

}  // namespace

JobTuneResult Faster() {
  JobTuneResult result;
  result.command = "torchrun --nproc-per-node 4 serve.py --token SECRET=abc";
  result.verdict = Verdict::kFaster;
  result.look = Profile(8.6e-3, 5.1e-3, 0.9e-3, 0.5e-3);
  result.shares.untried = 0.15;
  result.shares.reasons = {"groups of several calls, of library 2.29 and later"};
  result.by_default = Profile(8.5e-3, 5.0e-3, 0.9e-3, 0.5e-3);
  result.tuned = Profile(5.9e-3, 2.5e-3, 0.9e-3, 0.6e-3);
  AddContexts(&result);
  policy::Rule rule;
  rule.collective = Collective::kAllReduce;
  rule.min_bytes = 16385;
  rule.max_bytes = 32768;
  rule.config = kTree;
  rule.nodes = 1;
  rule.ranks = 4;
  result.policy.rules.push_back(rule);
  result.verified = {Launch(4, 1.43, 12), Launch(5, 1.45, 14), Launch(6, 1.44, 12),
                     Launch(7, 1.5, 4)};
  result.gain = PoolLaunches(result.verified);
  result.launches = {{1, "look and search", 61.2, 0, true, "launch-1.log"},
                     {2, "search", 60.4, 0, false, "launch-2.log"},
                     {3, "search", 3.1, 1, false, "launch-3.log"},
                     {4, "verify 1", 40.0, 0, false, "launch-4.log"},
                     {5, "verify 2", 40.2, 0, false, "launch-5.log"},
                     {6, "verify 3", 40.1, 0, false, "launch-6.log"},
                     {7, "verify 4", 12.0, 0, true, "launch-7.log"}};
  result.seconds = 262;
  result.metric = {MetricJudgement::Verdict::kUnchanged, 2.1234, 2.1236, 1e-4, 1e-3};
  return result;
}

JobTuneResult FasterByPairs() {
  JobTuneResult result = Faster();
  result.contexts[0].by_launches = result.contexts[0].unseen = true;
  result.contexts[0].seconds = 0;
  result.shares.of = LookShares::Of::kEstimatedTime;
  result.shares.by_launches = 0.85;
  result.verified.clear();
  result.pairs = {{4, 5, 8.5e-3, 5.9e-3, 200, 220, ""},
                  {7, 6, 8.6e-3, 5.9e-3, 200, 220, ""},
                  {8, 9, 8.4e-3, 5.9e-3, 200, 220, ""},
                  {10, 11, 8.4e-3, 0, 200, 0, "the command was ended by SIGKILL"}};
  result.gain = PoolPairs(result.pairs);
  result.by_default = result.tuned = {};
  result.metric = {};
  return result;
}

JobTuneResult WithVerdict(Verdict verdict) {
  JobTuneResult result = Faster();
  result.verdict = verdict;
  if (verdict == Verdict::kFaster) return result;
  result.policy.rules.clear();
  result.metric = {};
  switch (verdict) {
    case Verdict::kMetricChanged:
      result.metric = {MetricJudgement::Verdict::kChanged, 2.12, 2.19, 0.033, 1e-3};
      break;
    case Verdict::kNotConfirmed:
      result.verified = {Launch(4, 0.99, 12), Launch(5, 1.03, 12), Launch(6, 1.0, 12)};
      result.gain = PoolLaunches(result.verified);
      result.tuned = Profile(8.5e-3, 4.9e-3, 0.9e-3, 0.5e-3);
      result.why = "the interval of the gain has 1 in it";
      break;
    default:
      result.verified.clear();
      result.gain = {};
      result.by_default = result.tuned = {};
      for (TunedContext& one : result.contexts) one.chosen = {};
      if (verdict == Verdict::kUndecided) {
        result.why = "the command ended after 12 iterations, and 200 are needed: let it run longer";
        result.interrupted = true;
      }
      break;
  }
  return result;
}

}  // namespace diapason::job_tune::testing
