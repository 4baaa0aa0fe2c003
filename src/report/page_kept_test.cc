// Configurations that a verification has tried and the policy does not run.
#include <gtest/gtest.h>

#include <cmath>

#include "policy/parse.h"
#include "report/page.h"
#include "report/page_data.h"

namespace diapason::report {
namespace {

using dataset::Point;
using dataset::SampleOutcome;

Point At(uint64_t bytes, const char* algorithm = "", const char* protocol = "") {
  Point point;
  point.collective = "allreduce";
  point.bytes = bytes;
  point.ranks = 4;
  point.algorithm = algorithm;
  point.protocol = protocol;
  return point;
}

// A store of `tune`: a search over six sizes, and a verification of four.
class PageKeptTest : public ::testing::Test {
 protected:
  PageKeptTest() {
    for (const char* source : {"tune", "verify"}) {
      dataset::SampleRun run;
      run.id = run.source = source;
      run.machine.library = "nccl";
      run.machine.library_version = "2.28.9";
      input_.contents.runs.push_back(run);
    }
    for (uint64_t bytes = 1024; bytes <= 32768; bytes *= 2) Add(0, At(bytes), 1);
    Try(At(1024), At(1024, "tree", "ll"), 1.5);
    Try(At(2048), At(2048, "tree", "ll"), 1.2);
    Try(At(4096), At(4096, "tree", "ll"), 0.5);
    Try(At(8192), At(8192, "ring", "ll"), 1.0);
  }

  void Add(size_t run, const Point& point, double seconds) {
    for (int round = 0; round < 8; ++round) {
      dataset::Sample sample;
      sample.point = point;
      sample.seconds = seconds * (1 + 0.001 * (round % 3));
      sample.round = round;
      input_.contents.records.push_back({run, sample});
    }
  }
  void Try(const Point& standard, const Point& tuned, double gain) {
    Add(1, standard, 3e-6);
    Add(1, tuned, 3e-6 / gain);
  }
  void Policy(const std::string& text) {
    const auto policy = policy::ParseStrictly(text, "p.conf", {});
    ASSERT_TRUE(policy.ok()) << policy.status().message();
    input_.policies.push_back({"p.conf", policy.value()});
  }
  PageData Make() { return MakePageData(input_); }

  PageInput input_;
};

constexpr char kKept[] = "allreduce,0,3000,tree,ll,-1,1,4,-1,-1\n";

TEST_F(PageKeptTest, OnlyWhatThePolicyRunsIsInTheHeadline) {
  Policy(kKept);
  const PageData data = Make();
  const std::vector<PageVerified>& verified = data.groups[0].verified;
  ASSERT_EQ(verified.size(), 4u);
  EXPECT_EQ(verified[0].verdict, "faster");
  EXPECT_TRUE(verified[1].kept);
  EXPECT_EQ(verified[2].verdict, "not kept");
  EXPECT_FALSE(verified[2].kept);
  EXPECT_NEAR(verified[2].gain.median, 0.5, 1e-9);  // still shown
  EXPECT_EQ(verified[3].verdict, "not kept");
  const PageHeadline& headline = data.headline;
  EXPECT_TRUE(headline.by_policy);
  EXPECT_EQ(headline.sizes, 2u);
  EXPECT_EQ(headline.improved, 2u);
  EXPECT_EQ(headline.slower, 0u);
  EXPECT_EQ(headline.no_difference, 0u);
  EXPECT_EQ(headline.measured, 6u);
  EXPECT_EQ(headline.left_alone, 4u);
  EXPECT_EQ(headline.not_kept, 2u);
  EXPECT_EQ(headline.unverified, 0u);
  EXPECT_EQ(headline.worst_bytes, 2048u);
  EXPECT_NEAR(headline.worst_gain.median, 1.2, 1e-9);
  EXPECT_NEAR(headline.gain.median, std::sqrt(1.5 * 1.2), 1e-9);
  EXPECT_NEAR(headline.all.median, std::pow(1.5 * 1.2, 1.0 / 6), 1e-9);
  EXPECT_NE(LeadText(data).find("where the policy changes them, collectives are 1.34 times"),
            std::string::npos)
      << LeadText(data);
  EXPECT_NE(LeadText(data).find(" 4 of 6 sizes measured are left to the library."),
            std::string::npos);
}

TEST_F(PageKeptTest, WithoutAPolicyForItAllThatWasVerifiedCounts) {
  const auto expect_all = [](const PageData& data) {
    EXPECT_FALSE(data.headline.by_policy);
    EXPECT_EQ(data.headline.sizes, 4u);
    EXPECT_EQ(data.headline.slower, 1u);
    EXPECT_EQ(data.headline.worst_bytes, 4096u);
    EXPECT_FALSE(data.headline.all.known());
    EXPECT_EQ(data.groups[0].verified[2].verdict, "slower");
    EXPECT_TRUE(data.groups[0].verified[2].kept);
  };
  expect_all(Make());
  Policy("# diapason: version=1 library=rccl\nallreduce,0,3000,tree,ll,-1,1,4,-1,-1\n");
  expect_all(Make());
}

TEST_F(PageKeptTest, ShapeAndConfigurationHaveToFit) {
  // Another shape, and other channels: neither runs the verified configuration.
  Policy("allreduce,0,3000,tree,ll,-1,2,4,-1,-1\nallreduce,0,1024,tree,ll,2,1,4,-1,-1\n");
  const PageData data = Make();
  for (const PageVerified& one : data.groups[0].verified) EXPECT_EQ(one.verdict, "not kept");
  EXPECT_EQ(data.headline.sizes, 0u);
  EXPECT_EQ(data.headline.left_alone, 5u);
  EXPECT_EQ(data.headline.not_kept, 3u);
  EXPECT_EQ(data.headline.unverified, 1u);
  EXPECT_FALSE(data.headline.all.known());
  EXPECT_NE(LeadText(data).find("What the policy runs was not verified at 1 size."),
            std::string::npos);
}

TEST_F(PageKeptTest, OneOfSeveralPoliciesIsEnough) {
  Policy("allreduce,0,1024,tree,ll,-1,1,4,-1,-1\n");
  Policy("allreduce,4096,4096,tree,ll,-1,-1,-1,-1,-1\n");
  const PageData data = Make();
  EXPECT_EQ(data.groups[0].verified[1].verdict, "not kept");
  EXPECT_EQ(data.groups[0].verified[2].verdict, "slower");
  EXPECT_EQ(data.headline.sizes, 2u);
  EXPECT_EQ(data.headline.slower, 1u);
  EXPECT_EQ(data.headline.left_alone, 4u);
}

TEST_F(PageKeptTest, APolicyWithoutRowsLeavesAllToTheLibrary) {
  Policy("# diapason: version=1 library=nccl\n");
  const PageData data = Make();
  EXPECT_EQ(data.headline.sizes, 0u);
  EXPECT_EQ(data.headline.left_alone, 6u);
  EXPECT_EQ(data.headline.not_kept, 4u);
  EXPECT_TRUE(data.headline.worst.empty());
  EXPECT_NE(
      LeadText(data).find("The policy leaves collectives to the library at all sizes measured."),
      std::string::npos)
      << LeadText(data);
}

TEST_F(PageKeptTest, AFailureStaysOneAndTheDefaultAloneIsNoProof) {
  Add(1, At(16384), 3e-6);
  dataset::Sample crash;
  crash.point = At(4096, "tree", "ll");
  crash.outcome = SampleOutcome::kCrash;
  input_.contents.records.push_back({1, crash});
  Policy("allreduce,16384,16384,tree,ll,-1,1,4,-1,-1\n");
  const PageData data = Make();
  EXPECT_EQ(data.groups[0].verified[2].verdict, "failed");
  EXPECT_FALSE(data.groups[0].verified[2].kept);
  EXPECT_EQ(data.groups[0].verified[4].verdict, "default only");
  EXPECT_EQ(data.headline.sizes, 0u);
  EXPECT_EQ(data.headline.unverified, 1u);
}

TEST_F(PageKeptTest, IterationsAreJudgedByTheirRowsAndAsAWhole) {
  const auto step = [](uint64_t bytes, const char* algorithm = "", const char* protocol = "") {
    Point point = At(bytes, algorithm, protocol);
    point.kind = Point::Kind::kIteration;
    point.workload = "ddp";
    return point;
  };
  Point whole = step(2048);
  whole.environment = "DIAPASON_POLICY=policy.conf";
  Try(step(2048), step(2048, "tree", "ll"), 1.1);
  Try(step(4096), step(4096, "tree", "ll"), 1.1);
  Add(1, whole, 3e-6 / 0.8);
  PageInput before = input_;
  Policy(kKept);
  PageData data = Make();
  EXPECT_EQ(data.iterations.sizes, 2u);
  EXPECT_EQ(data.iterations.slower, 1u);
  EXPECT_EQ(data.iterations.left_alone, 1u);
  // All of it was taken out again: then the whole is not kept either.
  input_ = std::move(before);
  Policy("# diapason: version=1 library=nccl\n");
  data = Make();
  EXPECT_EQ(data.iterations.sizes, 0u);
  EXPECT_EQ(data.iterations.left_alone, 2u);
}

TEST_F(PageKeptTest, WhatThePolicyRunsSurvivesALimit) {
  Policy("allreduce,4096,4096,ring,simple,7,1,4,-1,-1\n");
  PageData data = Make();
  PageLimits limits;
  limits.cells = 1;
  LimitPage(limits, &data);
  const int runs = data.groups[0].decided.at(4096);
  EXPECT_EQ(data.configs.at(static_cast<size_t>(runs)).text, "ring/simple, 7 channels");
}

}  // namespace
}  // namespace diapason::report
