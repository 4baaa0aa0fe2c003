#include "tune/recorded_step.h"

#include <gtest/gtest.h>

#include "tune/workload.h"

namespace diapason::tune {
namespace {

// A job: calls of these kinds, 10 us apart unless there is a pause before one.
class Job {
 public:
  void Call(uint64_t bytes, Operation operation = Operation::kAllReduce) {
    calls_.push_back({operation, bytes, now_ += 10000});
  }
  void Pause() { now_ += 5000000; }
  const std::vector<TimedCall>& calls() const { return calls_; }

 private:
  std::vector<TimedCall> calls_;
  uint64_t now_ = 0;
};

std::vector<uint64_t> SizesOf(const RecordedStep& step) {
  std::vector<uint64_t> sizes;
  for (const TimedCall& call : step.calls) sizes.push_back(call.bytes);
  return sizes;
}

TEST(RecordedStep, CallsAtStartUpAreNoPartOfIt) {
  Job job;
  for (const uint64_t bytes : {4, 8, 1 << 20, 77, 4096, 16}) {
    job.Call(bytes, Operation::kBroadcast);
  }
  for (int step = 0; step < 20; ++step) {
    job.Pause();
    for (const uint64_t bytes : {1000, 2000, 3000}) job.Call(bytes);
  }
  job.Call(8);
  const auto step = FindStep(job.calls());
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(SizesOf(*step), (std::vector<uint64_t>{1000, 2000, 3000}));
  EXPECT_EQ(step->outside, 7U);
}

TEST(RecordedStep, StepsOfOneKindAreToldByThePausesBetweenThem) {
  Job job;
  for (int i = 0; i < 3; ++i) job.Call(4);
  for (int step = 0; step < 50; ++step) {
    job.Pause();
    for (int i = 0; i < 32; ++i) job.Call(32768);
  }
  const auto step = FindStep(job.calls());
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(step->calls.size(), 32U);
  const auto spec = StepIteration(*step);
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec.value().buckets.size(), 32U);
}

TEST(RecordedStep, OneKindWithoutPausesIsAStepOfOneCall) {
  Job job;
  for (int i = 0; i < 200; ++i) job.Call(32768);
  const auto step = FindStep(job.calls());
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(step->calls.size(), 1U);
}

TEST(RecordedStep, LayersThatRepeatAreNotTheStep) {
  Job job;
  for (int step = 0; step < 12; ++step) {
    job.Pause();
    for (int layer = 0; layer < 48; ++layer) {
      job.Call(65536, Operation::kAllGather);
      job.Call(65536, Operation::kReduceScatter);
    }
    job.Call(4);
  }
  const auto step = FindStep(job.calls());
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(step->calls.size(), 97U);
  EXPECT_EQ(step->calls.front().operation, Operation::kAllGather);
  EXPECT_EQ(step->calls.back().bytes, 4U);
  // More than a step can have: every second call.
  EXPECT_EQ(StepIteration(*step).value().buckets.size(), 49U);
}

TEST(RecordedStep, NothingRepeats) {
  Job job;
  EXPECT_FALSE(FindStep(job.calls()).has_value());
  for (uint64_t i = 1; i < 200; ++i) job.Call(i * i);
  EXPECT_FALSE(FindStep(job.calls()).has_value());
}

TEST(RecordedStep, WithoutAnOrderRareCallsAreTakenForStartUp) {
  measure::Subject subject;
  subject.backend = "nccl";
  subject.ranks = 4;
  // 500 steps of 32 calls and a small one; three calls at start-up.
  const Mix mix = MakeMix({{Operation::kAllReduce, 32768, 16000},
                           {Operation::kAllReduce, 4096, 500},
                           {Operation::kAllGather, 8192, 3}},
                          24, subject);
  const auto spec = MixIteration(mix);
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_EQ(spec.value().buckets.size(), 33U);
}

}  // namespace
}  // namespace diapason::tune
