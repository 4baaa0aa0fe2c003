#include "search/sweep.h"

#include <gtest/gtest.h>

namespace diapason::search {
namespace {

using dataset::SampleOutcome;

TEST(SweepPlanTest, TheDefaultComesFirstAndPairsThatNoMachineHasAreLeftOut) {
  measure::Subject subject;
  subject.library = Library::kNccl;
  subject.ranks = 4;
  SweepPlan plan;
  plan.operations = {Operation::kAllReduce, Operation::kAllToAll};
  plan.sizes = {1024, 1};  // the second has no float for anybody
  plan.algorithms = {"ring", "pat"};
  plan.channels = {0, 2};
  const Result<std::vector<CallCase>> call_cases = MakeCallCases(plan, subject);
  ASSERT_TRUE(call_cases.ok()) << call_cases.status().message();
  ASSERT_EQ(call_cases.value().size(), 2U);
  const CallCase& reduce = call_cases.value()[0];
  EXPECT_TRUE(reduce.candidates[0].config.IsDefault());
  for (const Candidate& candidate : reduce.candidates) {
    EXPECT_NE(candidate.config.algorithm, kPat);  // no allreduce of NCCL's runs PAT
  }
  EXPECT_EQ(reduce.candidates.size(), 1U + 3 * 2);
  // NCCL does not ask the tuner about alltoall.
  EXPECT_EQ(call_cases.value()[1].candidates.size(), 1U);
}

TEST(SweepPlanTest, RcclIsAlsoMeasuredWithoutOurPluginAndEnvironmentsHaveTheirOwnDefault) {
  measure::Subject subject;
  subject.library = Library::kRccl;
  subject.ranks = 8;
  SweepPlan plan;
  plan.operations = {Operation::kAllReduce};
  plan.sizes = {1024};
  plan.algorithms = {"ring"};
  plan.protocols = {"simple"};
  plan.environments = {"", "NCCL_X=1"};
  const std::vector<Candidate> candidates = MakeCallCases(plan, subject).value().front().candidates;
  const std::vector<Candidate> expected = {{{}, ""},
                                           {{}, "NCCL_TUNER_PLUGIN=none"},
                                           {{kRing, kSimple, 0}, ""},
                                           {{}, "NCCL_X=1"},
                                           {{kRing, kSimple, 0}, "NCCL_X=1"}};
  EXPECT_EQ(candidates, expected);
}

// Answers with a fixed time, and remembers what it was asked.
class FixedMeasurer : public measure::Measurer {
 public:
  Result<measure::Measurement> Measure(const measure::Trial& trial) override {
    asked.push_back(trial);
    measure::Measurement measurement;
    measurement.seconds = 1e-4;
    measurement.iterations = trial.iterations;
    measurement.outcome = outcome;
    return measurement;
  }
  const measure::Subject& subject() const override { return subject_; }
  double Now() const override { return 0; }
  std::vector<measure::Trial> asked;
  SampleOutcome outcome = SampleOutcome::kFine;

 private:
  measure::Subject subject_;
};

TEST(CalibratedTest, ChecksOnceAndFillsABlock) {
  FixedMeasurer fixed;
  CalibratedMeasurer::Options options;
  options.block_seconds = 0.002;
  CalibratedMeasurer calibrated(&fixed, options);
  measure::Trial trial;
  trial.bytes = 1024;
  EXPECT_EQ(calibrated.Measure(trial).value().iterations, 20);
  ASSERT_EQ(fixed.asked.size(), 2U);
  EXPECT_TRUE(fixed.asked[0].check);
  EXPECT_FALSE(fixed.asked[1].check);
  EXPECT_EQ(calibrated.Measure(trial).value().iterations, 20);
  EXPECT_EQ(fixed.asked.size(), 3U);
  trial.config.channels = 2;
  fixed.outcome = SampleOutcome::kWrong;
  EXPECT_EQ(calibrated.Measure(trial).value().outcome, SampleOutcome::kWrong);
  EXPECT_EQ(fixed.asked.size(), 4U);  // what computes wrong results is not timed
}

}  // namespace
}  // namespace diapason::search
