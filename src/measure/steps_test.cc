// Trials with a workload: whole steps of an iteration, on the simulated cluster.
#include <gtest/gtest.h>

#include <thread>

#include "comm/backends/sim/testing.h"
#include "measure/group_measurer.h"
#include "measure/iteration.h"
#include "measure/wire.h"

namespace diapason::measure {
namespace {

constexpr int kRanks = 4;

// Rank 0 runs `body` with an measurer, the others follow.
void OnRanks(const std::function<void(GroupMeasurer* measurer)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      GroupOptions options = comm::sim::SimulatedRank(rank, kRanks);
      options.choose = true;
      const Result<std::unique_ptr<Group>> group = Group::Create(options);
      ASSERT_TRUE(group.ok()) << group.status().message();
      if (rank > 0) {
        EXPECT_TRUE(GroupMeasurer::Follow(group.value().get()).ok());
        return;
      }
      const Result<std::unique_ptr<GroupMeasurer>> measurer =
          GroupMeasurer::Lead(group.value().get(), "h100x8");
      ASSERT_TRUE(measurer.ok()) << measurer.status().message();
      body(measurer.value().get());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

IterationSpec Fsdp() {
  IterationSpec spec = PresetSpec("fsdp", {.parts = 2, .bytes = 1 << 20}).value();
  spec.compute = 1e-4;
  return spec;
}

Trial Step(const IterationSpec& spec, Operation operation = Operation::kAllGather) {
  Trial trial;
  trial.operation = operation;
  trial.bytes = 1 << 20;
  trial.iterations = 5;
  trial.warmups = 1;
  trial.workload = EncodeSpec(spec);
  return trial;
}

TEST(Steps, ATrialWithAWorkloadSurvivesTheWire) {
  const Trial trial = Step(Fsdp());
  const Result<Trial> back = DecodeTrial(EncodeTrial(trial));
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back.value(), trial);
}

TEST(Steps, AConfigurationIsForItsBucketsAndNoOthers) {
  OnRanks([](GroupMeasurer* measurer) {
    const auto seconds = [&](const Trial& trial) {
      const Result<Measurement> measurement = measurer->Measure(trial);
      EXPECT_TRUE(measurement.ok());
      EXPECT_EQ(measurement.value().outcome, dataset::SampleOutcome::kFine)
          << measurement.value().note;
      return measurement.ok() ? measurement.value().seconds : 0;
    };
    const double own = seconds(Step(Fsdp()));
    EXPECT_GT(own, 1e-4);
    // One channel is far too few for a mebibyte.
    Trial gathers = Step(Fsdp());
    gathers.config = {kRing, kLl, 1};
    Trial scatters = Step(Fsdp(), Operation::kReduceScatter);
    scatters.config = {kRing, kLl, 1};
    const double slow_gathers = seconds(gathers);
    const double slow_scatters = seconds(scatters);
    EXPECT_GT(slow_gathers, own * 1.05);
    EXPECT_GT(slow_scatters, own * 1.05);
    // All of them together, as a policy would: slower than either.
    IterationSpec both = Fsdp();
    for (Bucket& bucket : both.buckets) bucket.config = {kRing, kLl, 1};
    EXPECT_GT(seconds(Step(both)), std::max(slow_gathers, slow_scatters) * 1.02);
    // What was set for one trial is gone with it.
    EXPECT_LT(seconds(Step(Fsdp())), own * 1.05);
    // A size that no bucket has changes nothing.
    gathers.bytes = 4096;
    EXPECT_LT(seconds(gathers), own * 1.05);
  });
}

TEST(Steps, WhatIsRefusedIsAReadingAndTheRanksGoOn) {
  OnRanks([](GroupMeasurer* measurer) {
    Trial trial = Step(Fsdp());
    trial.config = {kTree, kLl, 0};  // no tree gathers
    const Result<Measurement> refused = measurer->Measure(trial);
    ASSERT_TRUE(refused.ok()) << refused.status().message();
    EXPECT_EQ(refused.value().outcome, dataset::SampleOutcome::kRefused) << refused.value().note;
    EXPECT_FALSE(measurer->broken());
    const Result<Measurement> fine = measurer->Measure(Step(Fsdp()));
    ASSERT_TRUE(fine.ok());
    EXPECT_EQ(fine.value().outcome, dataset::SampleOutcome::kFine) << fine.value().note;
    trial.workload = "nonsense";
    EXPECT_EQ(measurer->Measure(trial).value().outcome, dataset::SampleOutcome::kRefused);
  });
}

TEST(Steps, ADatasetKnowsThemAsIterations) {
  Subject subject;
  subject.ranks = kRanks;
  Trial trial = Step(Fsdp());
  trial.config = {kRing, kLl, 1};
  const dataset::Point point = PointOf(trial, subject);
  EXPECT_EQ(point.kind, dataset::Point::Kind::kIteration);
  EXPECT_EQ(point.workload, "fsdp: 3 x allgather 1MiB, 2 x reducescatter 1MiB, 0.1 ms of compute");
  EXPECT_EQ(point.algorithm, "ring");
  // The configurations of a spec are not part of what it is.
  IterationSpec other = Fsdp();
  other.buckets[0].config = {kRing, kLl, 1};
  EXPECT_EQ(WorkloadText(other), point.workload);
}

}  // namespace
}  // namespace diapason::measure
