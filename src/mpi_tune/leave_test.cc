#include "mpi_tune/leave.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/temporary_file.h"
#include "policy/parse.h"

namespace diapason::mpi_tune {
namespace {

MpiTuneResult Tuned() {
  MpiTuneResult result;
  result.command = "mpirun -n 2 ./solver";
  result.verdict = Verdict::kFaster;
  TunedContext one;
  one.context.collective = Collective::kBroadcast;
  one.context.ranks = 2;
  one.context.least_bytes = one.context.most_bytes = one.context.usual_bytes = 1 << 20;
  one.context.share = 0.4;
  one.chosen = {3, kKeep, 0, 32768};
  one.alone.ranked = {{one.chosen, 1.5}};
  one.tried = {{{}, 2e-3, 1, 2}, {one.chosen, 1e-3, 0.5, 2}};
  result.contexts = {one};
  for (int i = 0; i < 8; ++i) {
    result.compared.defaults.push_back({2e-3, 4});
    result.compared.tuned.push_back({1e-3, 2.5});
  }
  result.compared.Judge();
  result.policy = PolicyOf({one.context}, {one.chosen}, &result.remarks);
  result.launches = {{1, "look", 4.5, {2e-3, 4}, "launch-1.log"}};
  return result;
}

TEST(Leave, WritesPolicyRulesReportAndResult) {
  TemporaryFolder folder;
  MpiTuneResult result = Tuned();
  LeaveOptions options;
  options.folder = folder.path();
  ASSERT_TRUE(Leave(options, &result).ok());
  const std::string policy = ReadFile(folder.path() + "/policy.conf", 65536).value();
  const Result<policy::Policy> read = policy::ParseStrictly(policy, "policy.conf", {});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read.value().rules[0].config.segment_bytes, 32768);
  const std::string rules = ReadFile(folder.path() + "/rules.conf", 65536).value();
  EXPECT_NE(rules.find("1048576 3 0 32768"), std::string::npos) << rules;
  EXPECT_NE(ReadFile(folder.path() + "/report.html", 1 << 24).value().find("./solver"),
            std::string::npos);
  const auto json =
      nlohmann::json::parse(ReadFile(folder.path() + "/result.json", 1 << 20).value());
  EXPECT_EQ(json["verdict"], "faster");
  EXPECT_NEAR(json["iteration"]["gain"].get<double>(), 2, 1e-9);
  EXPECT_NEAR(json["program"]["low"].get<double>(), 1.6, 1e-9);
  EXPECT_EQ(json["contexts"][0]["chosen"], "pipeline, segments of 32KiB");
  EXPECT_NE(UseText(result).find("--mca coll_tuned_dynamic_rules_filename " + result.rules),
            std::string::npos);
  EXPECT_NE(UseText(result).find("OMPI_MCA_coll_tuned_use_dynamic_rules=1"), std::string::npos);
}

std::string Text(const TemporaryFolder& folder, const std::string& name) {
  return ReadFile(folder.path() + "/" + name, 65536).value();
}

TEST(Leave, AnEarlierPolicyIsKept) {
  TemporaryFolder folder;
  for (const char* name : {"/rules.conf", "/policy.conf"}) {
    ASSERT_TRUE(WriteFileAtomically(folder.path() + name, "of an earlier run").ok());
  }
  LeaveOptions options;
  options.folder = folder.path();
  MpiTuneResult nothing = Tuned();
  nothing.verdict = Verdict::kNotConfirmed;
  nothing.policy = {};
  ASSERT_TRUE(Leave(options, &nothing).ok());
  EXPECT_EQ(Text(folder, "rules.conf"), "of an earlier run");
  EXPECT_EQ(Text(folder, "policy.conf"), "of an earlier run");
  EXPECT_EQ(UseText(nothing), "");
  ASSERT_FALSE(nothing.notes.empty());
  EXPECT_NE(nothing.notes[0].find("of an earlier run stay"), std::string::npos);
  MpiTuneResult tuned = Tuned();
  ASSERT_TRUE(Leave(options, &tuned).ok());
  EXPECT_NE(Text(folder, "rules.conf"), "of an earlier run");
  EXPECT_EQ(Text(folder, "rules.old.conf"), "of an earlier run");
  EXPECT_EQ(Text(folder, "policy.old.conf"), "of an earlier run");
}

TEST(Leave, WhatIsNotConfirmedIsNotInTheRules) {
  TemporaryFolder folder;
  MpiTuneResult result = Tuned();
  result.verdict = Verdict::kNotConfirmed;
  result.policy = {};
  result.remarks.clear();
  LeaveOptions options;
  options.folder = folder.path();
  ASSERT_TRUE(Leave(options, &result).ok());
  EXPECT_FALSE(FileExists(folder.path() + "/rules.conf"));
  EXPECT_EQ(UseText(result), "");
  EXPECT_FALSE(FileExists(folder.path() + "/policy.conf"));
}

}  // namespace
}  // namespace diapason::mpi_tune
