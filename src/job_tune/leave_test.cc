#include "job_tune/leave.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/temporary_file.h"
#include "dataset/store.h"
#include "job/prepare.h"
#include "job_tune/testing.h"
#include "policy/origin.h"
#include "policy/parse.h"

namespace diapason::job_tune {
namespace {

using testing::Faster;
using testing::WithVerdict;

class LeaveTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(folder_.path(), "");
    options_.folder = folder_.path() + "/new/out";
    options_.command_line = "diapason tune -- torchrun serve.py";
    options_.fingerprint = "4x NVIDIA H200";
    options_.now = 1.7e9;
  }
  std::string Read(const std::string& name) const {
    Result<std::string> read = ReadFile(options_.folder + "/" + name, 1 << 24);
    return read.ok() ? read.value() : "";
  }
  bool Has(const std::string& name) const { return FileExists(options_.folder + "/" + name); }

  TemporaryFolder folder_;
  LeaveOptions options_;
};

TEST_F(LeaveTest, APolicyWithItsEvidence) {
  JobTuneResult result = Faster();
  ASSERT_TRUE(Leave(options_, &result).ok());
  const std::string text = Read("policy.conf");
  const policy::ParseOutcome parsed = policy::ParsePolicy(text, {});
  EXPECT_EQ(parsed.errors, 0u) << text;
  EXPECT_EQ(parsed.policy.header.origin, policy::kFromWholeJob);
  EXPECT_EQ(parsed.policy.header.fingerprint, "4x NVIDIA H200");
  ASSERT_EQ(parsed.policy.rules.size(), 1u);
  const std::map<int, std::string> evidence = job::EvidenceIn(text);
  ASSERT_TRUE(evidence.contains(parsed.policy.rules[0].line)) << text;
  EXPECT_EQ(
      evidence.at(parsed.policy.rules[0].line),
      "verified: the iteration is 1.44 x as fast [1.42, 1.47], in 3 fresh launches, 38 changes "
      "of turns; in the search 1.41 x [1.38, 1.44] with this row alone");
  EXPECT_EQ(result.policy.rules[0].line, parsed.policy.rules[0].line);
  EXPECT_EQ(result.files.policy, options_.folder + "/policy.conf");
  EXPECT_EQ(result.files.previous, "");
}

TEST_F(LeaveTest, AnEarlierPolicyIsKept) {
  JobTuneResult result = Faster();
  ASSERT_TRUE(Leave(options_, &result).ok());
  ASSERT_TRUE(Leave(options_, &result).ok());
  EXPECT_FALSE(Has("policy.old.conf")) << "it is the same";
  ASSERT_TRUE(WriteFileAtomically(options_.folder + "/policy.conf", "# mine\n").ok());
  ASSERT_TRUE(Leave(options_, &result).ok());
  EXPECT_EQ(Read("policy.old.conf"), "# mine\n");
  EXPECT_NE(Read("policy.conf"), "# mine\n");
  EXPECT_EQ(result.files.previous, options_.folder + "/policy.old.conf");
}

TEST_F(LeaveTest, NothingConfirmedIsNoPolicy) {
  for (const Verdict verdict : {Verdict::kNothingToGain, Verdict::kNotConfirmed,
                                Verdict::kMetricChanged, Verdict::kUndecided}) {
    std::filesystem::remove_all(options_.folder);
    JobTuneResult result = WithVerdict(verdict);
    // Rows that a search left behind must not get through either.
    result.policy = Faster().policy;
    ASSERT_TRUE(Leave(options_, &result).ok());
    EXPECT_FALSE(Has("policy.conf"));
    EXPECT_TRUE(Has("report.html"));
    EXPECT_TRUE(Has("result.json"));
    ASSERT_TRUE(WriteFileAtomically(options_.folder + "/policy.conf", "# mine\n").ok());
    ASSERT_TRUE(Leave(options_, &result).ok());
    EXPECT_EQ(Read("policy.conf"), "# mine\n");
    EXPECT_EQ(result.files.policy, "");
    EXPECT_EQ(result.files.untouched, options_.folder + "/policy.conf");
    EXPECT_EQ(result.UseCommand(), "");
  }
}

TEST_F(LeaveTest, TheBlocksOfTheSearchAreSamples) {
  JobTuneResult result = Faster();
  ASSERT_TRUE(Leave(options_, &result).ok());
  ASSERT_TRUE(Leave(options_, &result).ok());
  Result<std::unique_ptr<dataset::SampleStore>> store =
      dataset::SampleStore::Open(result.files.measurements, dataset::SampleStore::Access::kRead);
  ASSERT_TRUE(store.ok());
  const Result<dataset::StoreContents> read = store.value()->Read();
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read.value().runs.size(), 2u);
  EXPECT_EQ(read.value().runs[0].source, "tune");
  EXPECT_EQ(read.value().runs[0].machine.library_version, "2.28.9");
  EXPECT_EQ(read.value().runs[0].machine.gpu, "4x NVIDIA H200");
  // 13 blocks, each beside one of the default.
  ASSERT_EQ(read.value().records.size(), 2 * 2 * 13u);
  size_t defaults = 0;
  for (const dataset::StoredSample& one : read.value().records) {
    EXPECT_EQ(one.sample.point.kind, dataset::Point::Kind::kIteration);
    EXPECT_EQ(one.sample.point.collective, "allreduce");
    EXPECT_EQ(one.sample.point.bytes, 32768u);
    EXPECT_EQ(one.sample.point.workload.find("job: torchrun"), 0u);
    EXPECT_EQ(one.sample.point.workload.find("abc"), std::string::npos) << "a secret";
    defaults += one.sample.point.IsDefault() ? 1 : 0;
  }
  EXPECT_EQ(defaults, 2 * 13u);
}

TEST_F(LeaveTest, ResultHasEverything) {
  JobTuneResult result = Faster();
  ASSERT_TRUE(Leave(options_, &result).ok());
  const nlohmann::json json = nlohmann::json::parse(Read("result.json"));
  EXPECT_EQ(json["verdict"], "faster");
  EXPECT_NEAR(json["gain"]["gain"].get<double>(), 1.44, 0.01);
  EXPECT_EQ(json["verified"].size(), 4u);
  EXPECT_EQ(json["verified"][3]["decided"], false);
  EXPECT_TRUE(json["verified"][3]["gain"].is_null());
  EXPECT_NEAR(json["iteration"]["tuned"]["compute_us"].get<double>(), 2500, 1);
  EXPECT_EQ(json["contexts"][0]["chosen"]["algorithm"], "tree");
  EXPECT_TRUE(json["contexts"][1]["chosen"].is_null());
  EXPECT_EQ(json["files"]["policy"], result.files.policy);
  EXPECT_EQ(json.dump().find("SECRET=abc"), std::string::npos);
  EXPECT_EQ(Read("report.html").find("SECRET=abc"), std::string::npos);
}

TEST_F(LeaveTest, AFolderThatCannotBeMadeIsSaid) {
  ASSERT_TRUE(WriteFileAtomically(folder_.path() + "/file", "x").ok());
  options_.folder = folder_.path() + "/file/out";
  JobTuneResult result = Faster();
  const Status left = Leave(options_, &result);
  ASSERT_FALSE(left.ok());
  EXPECT_NE(left.message().find("choose another one with --output"), std::string::npos);
}

}  // namespace
}  // namespace diapason::job_tune
