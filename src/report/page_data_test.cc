#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "policy/parse.h"
#include "report/page_testing.h"

namespace diapason::report {
namespace {

TEST(PageDataTest, ASearchBecomesCellsFastestFirst) {
  Samples samples;
  const size_t run = samples.Run("sweep");
  samples.Many(run, At(1024), 20e-6);
  samples.Many(run, At(1024, "tree", "ll"), 10e-6);
  samples.Many(run, At(4096), 40e-6);
  const PageData data = samples.Make();
  ASSERT_EQ(data.groups.size(), 1u);
  const PageGroup& group = data.groups[0];
  EXPECT_EQ(group.label, "allreduce, 4 ranks on 1 node, f32 sum");
  EXPECT_EQ(group.shape, "4 ranks on 1 node, f32 sum");
  EXPECT_DOUBLE_EQ(group.bus_factor, 1.5);
  ASSERT_EQ(group.sizes.size(), 2u);
  ASSERT_EQ(group.sizes[0].cells.size(), 2u);
  EXPECT_EQ(data.configs[static_cast<size_t>(group.sizes[0].cells[0].config)].text, "tree/ll");
  EXPECT_NEAR(group.sizes[0].cells[0].time.median, 10e-6, 1e-8);
  EXPECT_EQ(group.sizes[0].cells[0].time.samples, 12u);
  EXPECT_EQ(group.sizes[0].cells[1].config, 0);
  EXPECT_EQ(data.samples, 36u);
  EXPECT_EQ(data.configs[0].text, "library default");
}

TEST(PageDataTest, AClearWinnerIsChosenAndATieIsNot) {
  Samples samples;
  const size_t run = samples.Run("sweep");
  samples.Many(run, At(1024), 20e-6);
  samples.Many(run, At(1024, "tree", "ll"), 10e-6);
  samples.Many(run, At(2048), 20e-6);
  samples.Many(run, At(2048, "tree", "ll"), 19.99e-6);
  samples.Many(run, At(4096), 20e-6, 1);
  samples.Many(run, At(4096, "tree", "ll"), 10e-6, 1);
  samples.Many(run, At(8192, "tree", "ll"), 10e-6);
  const PageData data = samples.Make();
  const std::vector<PageSize>& sizes = data.groups[0].sizes;
  EXPECT_EQ(sizes[0].certainty, Certainty::kClear);
  EXPECT_NE(sizes[0].chosen, 0);
  EXPECT_NEAR(sizes[0].lost.median, 2, 0.01);
  EXPECT_LT(sizes[0].lost.interval.low, 2);
  EXPECT_GT(sizes[0].lost.interval.high, 2);
  EXPECT_EQ(sizes[1].certainty, Certainty::kTie);
  EXPECT_EQ(sizes[1].chosen, 0);
  EXPECT_TRUE(sizes[1].cells[1].tie);
  // One sample each tells nothing.
  EXPECT_EQ(sizes[2].certainty, Certainty::kFew);
  EXPECT_EQ(sizes[2].chosen, 0);
  EXPECT_EQ(sizes[3].certainty, Certainty::kAlone);
  EXPECT_EQ(sizes[3].chosen, -1);
}

TEST(PageDataTest, VerificationPairsRoundsAndStaysApartFromTheSearch) {
  Samples samples;
  const size_t sweep = samples.Run("sweep");
  samples.Many(sweep, At(1024), 1);
  const size_t verify = samples.Run("verify");
  // Both get slower together: only the rounds show the gain.
  for (int round = 0; round < 8; ++round) {
    const double drift = std::pow(2, round);
    samples.Add(verify, At(1024), 3e-6 * drift, round);
    samples.Add(verify, At(1024, "tree", "ll"), 2e-6 * drift, round);
    samples.Add(verify, At(4096), 3e-6, round);
    samples.Add(verify, At(8192), 2e-6 * (1 + 0.1 * (round % 2)), round);
    samples.Add(verify, At(8192, "tree", "ll"), 2e-6 * (1 + 0.1 * ((round + 1) % 2)), round);
  }
  const PageData data = samples.Make();
  const PageGroup& group = data.groups[0];
  EXPECT_EQ(group.sizes[0].cells[0].time.samples, 12u);
  ASSERT_EQ(group.verified.size(), 3u);
  EXPECT_EQ(group.verified[0].verdict, "faster");
  EXPECT_NEAR(group.verified[0].gain.median, 1.5, 1e-12);
  EXPECT_EQ(group.verified[0].gain.samples, 8u);
  EXPECT_EQ(group.verified[1].verdict, "left alone");
  EXPECT_FALSE(group.verified[1].tuned.known());
  EXPECT_EQ(group.verified[2].verdict, "no difference");
  EXPECT_TRUE(data.headline.verified);
  EXPECT_EQ(data.headline.sizes, 2u);
  EXPECT_EQ(data.headline.improved, 1u);
  EXPECT_EQ(data.headline.no_difference, 1u);
  EXPECT_EQ(data.headline.left_alone, 1u);
  EXPECT_EQ(data.headline.worst, "allreduce");
  EXPECT_EQ(data.headline.worst_bytes, 8192u);
  EXPECT_NEAR(data.headline.gain.median, std::sqrt(1.5 * data.headline.worst_gain.median), 1e-9);
  EXPECT_LE(data.headline.gain.interval.low, data.headline.gain.median);
}

TEST(PageDataTest, FewRoundsAndFailuresAreNoVerdict) {
  Samples samples;
  const size_t verify = samples.Run("verify");
  for (int round = 0; round < 5; ++round) {
    samples.Add(verify, At(1024), 3e-6, round);
    samples.Add(verify, At(1024, "tree", "ll"), 2e-6, round);
  }
  samples.Add(verify, At(2048), 3e-6, 0);
  samples.Fail(verify, At(2048, "tree", "ll"), SampleOutcome::kHang, "it hung");
  const PageData data = samples.Make();
  const std::vector<PageVerified>& verified = data.groups[0].verified;
  EXPECT_EQ(verified[0].verdict, "too few rounds");
  EXPECT_EQ(verified[1].verdict, "failed");
  EXPECT_EQ(data.headline.too_few, 1u);
  EXPECT_EQ(data.headline.no_difference, 0u);
  ASSERT_EQ(data.failures.size(), 1u);
  EXPECT_EQ(data.failures[0].outcome, "hang");
  EXPECT_EQ(data.failures[0].note, "it hung");
  EXPECT_EQ(data.failures[0].bytes, 2048u);
}

TEST(PageDataTest, IterationsHaveAHeadlineOfTheirOwn) {
  Samples samples;
  const size_t verify = samples.Run("verify");
  Point step = At(4 << 20);
  step.kind = Point::Kind::kIteration;
  step.workload = "ddp: 4 x allreduce 4MiB, 20 ms of compute";
  Point tuned = step;
  tuned.environment = "DIAPASON_POLICY=p.conf";
  for (int round = 0; round < 8; ++round) {
    samples.Add(verify, step, 22e-3, round);
    samples.Add(verify, tuned, 20e-3, round);
  }
  const PageData data = samples.Make();
  EXPECT_EQ(data.headline.sizes, 0u);
  EXPECT_EQ(data.iterations.sizes, 1u);
  EXPECT_NEAR(data.iterations.gain.median, 1.1, 1e-9);
  EXPECT_EQ(data.groups[0].shape, "4 ranks on 1 node, f32 sum");
  ASSERT_EQ(data.variables.size(), 2u);
  EXPECT_EQ(data.variables[0].name, "DIAPASON_POLICY");
  EXPECT_EQ(data.variables[0].samples, 8u);
  EXPECT_EQ(data.variables[1].runs, 1u);
}

TEST(PageDataTest, VersionsAndSimulationsAreNeverMixed) {
  Samples samples;
  samples.Many(samples.Run("sweep", "2.28.9"), At(1024), 1e-6);
  samples.Many(samples.Run("sweep", "2.29.1"), At(1024), 2e-6);
  samples.Many(samples.Run("sweep", "2.29.1", true), At(1024), 3e-6);
  const PageData data = samples.Make();
  ASSERT_EQ(data.places.size(), 3u);
  ASSERT_EQ(data.groups.size(), 3u);
  for (const PageGroup& group : data.groups) EXPECT_EQ(group.sizes[0].cells[0].time.samples, 12u);
  EXPECT_EQ(data.simulated, 12u);
  EXPECT_EQ(data.samples, 36u);
}

TEST(PageDataTest, WhatIsSimulatedIsNotInTheHeadline) {
  Samples samples;
  const size_t real = samples.Run("sweep");
  samples.Many(real, At(1024), 20e-6);
  samples.Many(real, At(1024, "tree", "ll"), 10e-6);
  const size_t simulated = samples.Run("sweep", "2.28.9", true);
  samples.Many(simulated, At(1024), 90e-6);
  samples.Many(simulated, At(1024, "ring", "ll"), 10e-6);
  const PageData data = samples.Make();
  EXPECT_EQ(data.headline.sizes, 1u);
  EXPECT_NEAR(data.headline.gain.median, 2, 0.01);
}

TEST(PageDataTest, FamiliesThatAreDrawnTogetherDiffer) {
  Samples samples;
  const size_t run = samples.Run("sweep");
  samples.Many(run, At(1024), 20e-6);
  samples.Many(run, At(1024, "tree", "ll"), 10e-6);
  samples.Many(run, At(1024, "tree", "ll", 4), 10e-6);
  samples.Many(run, At(1024, "ring", "ll"), 10e-6);
  samples.Many(samples.Run("sweep", "2.29.1"), At(1024, "pat", "simple"), 10e-6);
  const PageData data = samples.Make();
  std::map<std::string, int> families;
  for (const PageConfig& config : data.configs) families[config.text] = config.family;
  EXPECT_EQ(families["library default"], 0);
  EXPECT_EQ(families["tree/ll"], families["tree/ll, 4 channels"]);
  EXPECT_NE(families["tree/ll"], families["ring/ll"]);
  EXPECT_GT(families["ring/ll"], 0);
  // Of another library: it may have a colour that is taken here.
  EXPECT_EQ(families["pat/simple"], 1);
}

TEST(PageDataTest, APolicyIsMappedOverWhatWasMeasured) {
  Samples samples;
  const size_t run = samples.Run("sweep");
  for (const uint64_t bytes : {1024, 4096, 65536}) {
    samples.Many(run, At(bytes), 20e-6);
    samples.Many(run, At(bytes, "tree", "ll"), 16e-6);
    samples.Many(run, At(bytes, "ring", "ll"), 15e-6);
  }
  const auto policy = policy::ParseStrictly(
      "# learned: 1.3 x\nallreduce,0,8191,tree,ll,-1,1,4,-1,-1\n"
      "allgather,0,64,ring,ll,-1,-1,-1,-1,-1\n",
      "p.conf", {});
  ASSERT_TRUE(policy.ok()) << policy.status().message();
  samples.input.policies.push_back({"p.conf", policy.value()});
  const PageData data = samples.Make();
  ASSERT_EQ(data.maps.size(), 2u);
  const PageMap& map = data.maps[0];
  EXPECT_EQ(map.name, "p.conf");
  ASSERT_EQ(map.rows.size(), 2u);
  ASSERT_EQ(map.rows[0].decisions.size(), 2u);
  const PageDecision& decision = map.rows[0].decisions[0];
  EXPECT_EQ(decision.last, 8191u);
  EXPECT_EQ(decision.line, 2);
  EXPECT_EQ(decision.row, "allreduce,0,8191,tree,ll,-1,1,4,-1,-1");
  EXPECT_EQ(decision.proofs.size(), 2u);
  EXPECT_NEAR(decision.proofs[0].gain.median, 1.25, 0.01);
  EXPECT_FALSE(decision.proofs[0].verified);
  EXPECT_EQ(map.rows[0].decisions[1].config, 0);
  EXPECT_EQ(map.rows[1].group, -1);
  EXPECT_EQ(map.rows[1].label, "allgather, any number of ranks on any number of nodes");
  // The policy's choice, and the better one according to the data.
  const PageSize& first = data.groups[0].sizes[0];
  EXPECT_EQ(data.configs[static_cast<size_t>(first.chosen)].text, "tree/ll");
  EXPECT_NEAR(first.lost_chosen.median, 16.0 / 15, 0.01);
  EXPECT_EQ(data.groups[0].sizes[2].chosen, 0);
  ASSERT_EQ(data.maps[1].rows.size(), 1u);
  EXPECT_EQ(data.maps[1].rows[0].decisions.size(), 1u);
  EXPECT_EQ(data.maps[1].rows[0].decisions[0].last, 65536u);
}

TEST(PageDataTest, JournalsGiveCurvesAndAgreement) {
  PageInput input;
  for (const char* name : {"learn.0.jsonl", "learn.1.jsonl"}) {
    const std::string path = std::string(DIAPASON_SOURCE_DIR) + "/tests/data/journals/" + name;
    auto read = journal::ReadJournal(path);
    ASSERT_TRUE(read.ok()) << read.status().message();
    input.journals.push_back({name, std::move(read).value()});
  }
  const PageData data = MakePageData(std::move(input));
  ASSERT_EQ(data.journals.size(), 2u);
  EXPECT_GT(data.journals[0].decisions, 0u);
  ASSERT_FALSE(data.learning.empty());
  const PageLearning& learning = data.learning[0];
  EXPECT_FALSE(learning.blocks.empty());
  size_t used = 0;
  for (const PageLearning::Arm& arm : learning.arms) used += arm.state == "in use" ? 1 : 0;
  EXPECT_EQ(used, 1u);
  EXPECT_EQ(learning.arms[0].config, 0);
  EXPECT_DOUBLE_EQ(learning.arms[0].ratio.median, 1);
  EXPECT_EQ(data.agreement.journals, 2u);
  EXPECT_EQ(data.title, "diapason report: what a job learned");
  EXPECT_NE(LeadText(data).find("all ranks chose the same for every call. Learned in"),
            std::string::npos)
      << LeadText(data);
}

TEST(PageDataTest, RanksThatChoseDifferentlyAreTheTitleAndTheLead) {
  PageInput input;
  for (const char* name : {"disagree.0.jsonl", "disagree.2.jsonl"}) {
    const std::string path = std::string(DIAPASON_SOURCE_DIR) + "/tests/data/journals/" + name;
    auto read = journal::ReadJournal(path);
    ASSERT_TRUE(read.ok()) << read.status().message();
    input.journals.push_back({name, std::move(read).value()});
  }
  PageInput alone;
  alone.journals.push_back(input.journals.front());
  const PageData data = MakePageData(std::move(input));
  EXPECT_EQ(data.title, "diapason report: ranks that did not agree");
  EXPECT_NE(LeadText(data).find("the ranks chose differently for"), std::string::npos)
      << LeadText(data);
  EXPECT_EQ(MakePageData(std::move(alone)).title, "diapason report: what a job decided");
}

TEST(PageDataTest, LibrariesAreNeverPooledInTheHeadline) {
  Samples samples;
  const auto verify = [&](const std::string& library, const char* algorithm, double gain,
                          double started) {
    const size_t run = samples.Run("verify", "1", false, library, started);
    samples.Many(run, At(1024), gain * 1e-6);
    samples.Many(run, At(1024, algorithm), 1e-6);
  };
  verify("gloo", "ring", 18, 1e9);
  verify("openmpi", "linear", 1.5, 2e9);
  PageInput again = samples.input;
  PageData data = samples.Make();
  EXPECT_EQ(data.places[data.headline.place].library, "openmpi");  // the newest
  EXPECT_NEAR(data.headline.gain.median, 1.5, 0.01);
  ASSERT_EQ(data.other_headlines.size(), 1u);
  EXPECT_NEAR(data.other_headlines[0].gain.median, 18, 0.1);
  const std::string lead = LeadText(data);
  EXPECT_NE(lead.find("collectives with openmpi 1 are 1.50 times"), std::string::npos) << lead;
  EXPECT_NE(lead.find("collectives with gloo 1 are 18.00 times"), std::string::npos) << lead;
  // A policy says which of them the page is about.
  const auto policy = policy::ParseStrictly(
      "# diapason: version=1 library=gloo\nallreduce,0,2048,ring,-1,-1,-1,-1,-1,-1\n", "p.conf",
      {});
  ASSERT_TRUE(policy.ok()) << policy.status().message();
  again.policies.push_back({"p.conf", policy.value()});
  data = MakePageData(std::move(again));
  EXPECT_EQ(data.places[data.headline.place].library, "gloo");
  EXPECT_EQ(data.other_headlines.size(), 1u);
}

TEST(PageDataTest, WhereOnlyTheDefaultWasMeasuredNothingIsSupported) {
  Samples samples;
  const size_t run = samples.Run("sweep");
  for (const char* collective : {"allreduce", "allgather"}) {
    for (const uint64_t bytes : {1024, 2048, 4096}) {
      Point point = At(bytes);
      point.collective = collective;
      samples.Many(run, point, 1e-6);
    }
  }
  PageInput tried = samples.input;
  const PageData data = samples.Make();
  EXPECT_EQ(data.headline.left_alone, 6u);
  EXPECT_EQ(data.headline.only_default, 6u);
  EXPECT_EQ(CasesText(6, data.headline.left_extent), "6 cases, 3 sizes in each of 2 contexts");
  EXPECT_EQ(data.maps[0].rows[0].decisions[0].why, "nothing but the default was measured");
  // A configuration that was refused counts as tried.
  Samples again{std::move(tried)};
  again.Fail(run, At(1024, "tree", "ll"), SampleOutcome::kRefused, "not here");
  EXPECT_EQ(again.Make().headline.only_default, 5u);
  EXPECT_EQ(CasesText(5, {2, 3}), "5 cases in 2 contexts");
  EXPECT_EQ(CasesText(5, {1, 5}), "5 sizes");
}

TEST(PageDataTest, RefusalsAreNoReasonForDoubt) {
  Samples samples;
  const size_t run = samples.Run("sweep");
  samples.Many(run, At(1024), 1e-6);
  samples.Fail(run, At(1024, "tree", "ll"), SampleOutcome::kRefused, "not here");
  PageInput again = samples.input;
  const auto doubts = [](const PageData& data) {
    size_t found = 0;
    for (const Finding& one : data.trust) found += one.id == "failures" ? 1 : 0;
    return found;
  };
  EXPECT_EQ(doubts(samples.Make()), 0u);
  Samples hung{std::move(again)};
  hung.Fail(run, At(1024, "ring", "ll"), SampleOutcome::kHang, "no answer");
  const PageData data = hung.Make();
  EXPECT_EQ(doubts(data), 1u);
  ASSERT_EQ(data.failures.size(), 2u);
  EXPECT_EQ(data.failures[0].outcome, "hang");
  EXPECT_EQ(data.failures[1].outcome, "refused");
}

TEST(PageDataTest, TimesThatAreNoneHaveNoPlace) {
  Samples samples;
  const size_t run = samples.Run("sweep");
  samples.Add(run, At(1024), std::nan(""), 0);
  samples.Add(run, At(2048), 0, 0);
  samples.Add(run, At(4096), INFINITY, 0);
  const PageData data = samples.Make();
  ASSERT_EQ(data.groups.size(), 1u);
  EXPECT_TRUE(data.groups[0].sizes.empty());
}

}  // namespace
}  // namespace diapason::report
