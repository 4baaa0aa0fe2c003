#include "tune/workload.h"

#include <gtest/gtest.h>

namespace diapason::tune {
namespace {

measure::Subject Four() {
  measure::Subject subject;
  subject.backend = "nccl";
  subject.ranks = 4;
  return subject;
}

TEST(Mix, CallsOfOneKindAreOneAndTheCostliestComeFirst) {
  const Mix mix = MakeMix({{Operation::kAllReduce, 1024, 10},
                           {Operation::kAllReduce, uint64_t{64} << 20, 5},
                           {Operation::kAllReduce, 1024, 7},
                           {Operation::kAllGather, 0, 3}},
                          10, Four());
  ASSERT_EQ(mix.entries.size(), 2U);
  EXPECT_EQ(mix.entries[0].bytes, uint64_t{64} << 20);
  EXPECT_EQ(mix.entries[1].calls, 17U);
  EXPECT_EQ(mix.calls, 22U);
  EXPECT_DOUBLE_EQ(mix.covered, 1);
}

TEST(Mix, WhatDoesNotFitIsLeftOutAndSaid) {
  std::vector<MixEntry> entries;
  for (uint64_t i = 1; i <= 50; ++i) entries.push_back({Operation::kAllReduce, i << 20, 1});
  const Mix mix = MakeMix(entries, 10, Four());
  EXPECT_EQ(mix.entries.size(), 10U);
  EXPECT_EQ(mix.entries.front().bytes, uint64_t{50} << 20);
  EXPECT_GT(mix.covered, 0.2);
  EXPECT_LT(mix.covered, 0.5);
}

TEST(Mix, ContestsAreOfItsSizesOnly) {
  const Mix mix =
      MakeMix({{Operation::kAllReduce, 3000, 10}, {Operation::kAllGather, 8192, 5}}, 10, Four());
  const Result<std::vector<search::CallCase>> call_cases = MixCallCases(mix, {}, Four());
  ASSERT_TRUE(call_cases.ok()) << call_cases.status().message();
  ASSERT_EQ(call_cases.value().size(), 2U);
  for (const search::CallCase& call_case : call_cases.value()) {
    EXPECT_EQ(call_case.trial.bytes,
              call_case.trial.operation == Operation::kAllReduce ? 3000U : 8192U);
    EXPECT_TRUE(call_case.candidates.front().config.IsDefault());
    EXPECT_GT(call_case.candidates.size(), 1U);
  }
}

TEST(Mix, AStepHasTheCallsOfOneIterationInTurns) {
  // 100 iterations of four gathers, two scatters and one sum.
  const Mix mix = MakeMix({{Operation::kAllGather, 1 << 20, 400},
                           {Operation::kReduceScatter, 1 << 20, 200},
                           {Operation::kAllReduce, 4096, 100},
                           {Operation::kBroadcast, 4096, 1}},
                          10, Four());
  const Result<measure::IterationSpec> spec = MixIteration(mix);
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  ASSERT_EQ(spec.value().buckets.size(), 7U);
  int gathers = 0;
  for (const measure::Bucket& bucket : spec.value().buckets) {
    gathers += bucket.operation == Operation::kAllGather ? 1 : 0;
    EXPECT_NE(bucket.operation, Operation::kBroadcast);
  }
  EXPECT_EQ(gathers, 4);
  // They are spread over the step, not one kind after the other.
  EXPECT_NE(spec.value().buckets[1].operation, spec.value().buckets[2].operation);
}

TEST(Mix, AnEndlessMixStillMakesAStep) {
  std::vector<MixEntry> entries = {{Operation::kAllReduce, 4096, 1}};
  for (uint64_t i = 1; i <= 20; ++i) entries.push_back({Operation::kAllReduce, i << 12, 100000});
  const Result<measure::IterationSpec> spec = MixIteration(MakeMix(entries, 24, Four()));
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  EXPECT_LE(spec.value().buckets.size(), 84U);
  EXPECT_GE(spec.value().buckets.size(), 20U);
}

TEST(Mix, BroadcastsAloneAreNoStep) {
  EXPECT_FALSE(MixIteration(MakeMix({{Operation::kBroadcast, 4096, 10}}, 10, Four())).ok());
}

TEST(IterationCallCases, OneForEveryKindOfBucketThatHasAChoice) {
  const measure::IterationSpec moe =
      measure::PresetSpec("moe", {.parts = 2, .bytes = 65536}).value();
  const Result<std::vector<search::CallCase>> call_cases = IterationCallCases(moe, {}, Four());
  ASSERT_TRUE(call_cases.ok()) << call_cases.status().message();
  // all_reduce and all_gather; nobody can choose for all_to_all.
  ASSERT_EQ(call_cases.value().size(), 2U);
  for (const search::CallCase& call_case : call_cases.value()) {
    const Result<measure::IterationSpec> back = measure::DecodeSpec(call_case.trial.workload);
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(back.value().buckets.size(), moe.buckets.size());
    const dataset::Point point = measure::PointOf(call_case.trial, Four());
    EXPECT_EQ(point.kind, dataset::Point::Kind::kIteration);
    EXPECT_EQ(point.workload, measure::WorkloadText(moe));
  }
}

TEST(IterationCallCases, ALibraryWithoutChoicesHasNothingToTune) {
  measure::Subject gloo = Four();
  gloo.backend = "gloo";
  gloo.library = Library::kGloo;
  const measure::IterationSpec fsdp = measure::PresetSpec("fsdp", {}).value();
  EXPECT_FALSE(IterationCallCases(fsdp, {}, gloo).ok());
}

}  // namespace
}  // namespace diapason::tune
