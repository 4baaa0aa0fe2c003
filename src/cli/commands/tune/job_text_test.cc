#include "cli/commands/tune/job_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "job_tune/testing.h"

namespace diapason::cli {
namespace {

using job_tune::JobTuneResult;
using job_tune::Verdict;
using job_tune::testing::WithVerdict;

// The text of every verdict, compared with job_text.golden; with DIAPASON_UPDATE_GOLDEN set the
// file is written instead.
TEST(JobTuneText, IsAsInTheGoldenFile) {
  std::string all;
  for (const Verdict verdict : {Verdict::kFaster, Verdict::kNothingToGain, Verdict::kNotConfirmed,
                                Verdict::kMetricChanged, Verdict::kUndecided}) {
    JobTuneResult result = WithVerdict(verdict);
    result.files.folder = "diapason-tuned";
    result.files.report = "diapason-tuned/report.html";
    result.files.result = "diapason-tuned/result.json";
    result.files.measurements = "diapason-tuned/measurements.db";
    if (verdict == Verdict::kFaster) {
      result.files.policy = "diapason-tuned/policy.conf";
      result.files.previous = "diapason-tuned/policy.old.conf";
    }
    if (verdict == Verdict::kNotConfirmed) result.files.untouched = "diapason-tuned/policy.conf";
    all += "=== " + std::string(job_tune::VerdictName(verdict)) + "\n" + JobTuneText(result);
  }
  all += "=== faster, by pairs of launches\n" + JobTuneText(job_tune::testing::FasterByPairs());
  const std::string path = DIAPASON_SOURCE_DIR "/src/cli/commands/tune/job_text.golden";
  if (std::getenv("DIAPASON_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(WriteFileAtomically(path, all).ok());
  }
  const Result<std::string> golden = ReadFile(path, 1 << 20);
  ASSERT_TRUE(golden.ok());
  EXPECT_EQ(all, golden.value());
}

TEST(JobTuneText, OneLaunchSaysWhatIsAssumed) {
  JobTuneResult result = WithVerdict(Verdict::kFaster);
  result.verified.resize(1);
  result.gain = job_tune::PoolLaunches(result.verified);
  const std::string text = JobTuneText(result);
  EXPECT_NE(text.find("in 1 fresh launch\n"), std::string::npos) << text;
  EXPECT_NE(text.find("one launch: that launches differ by 3 % is assumed"), std::string::npos);
}

TEST(JobTuneText, ForeignTextsCannotMoveTheCursor) {
  JobTuneResult result = WithVerdict(Verdict::kUndecided);
  result.why = "\x1b[2J";
  result.contexts[1].untried = "\x1b[2J";
  EXPECT_EQ(JobTuneText(result).find('\x1b'), std::string::npos);
  EXPECT_EQ(job_tune::ResultJson(result).find('\x1b'), std::string::npos);
}

TEST(JobTuneJson, IsOneDocumentForEveryVerdict) {
  for (const Verdict verdict : {Verdict::kFaster, Verdict::kNothingToGain, Verdict::kNotConfirmed,
                                Verdict::kMetricChanged, Verdict::kUndecided}) {
    const auto json = nlohmann::json::parse(job_tune::ResultJson(WithVerdict(verdict)));
    EXPECT_EQ(json["verdict"], job_tune::VerdictName(verdict));
    EXPECT_EQ(json["policy"].size(), verdict == Verdict::kFaster ? 1u : 0u);
  }
  const auto pairs =
      nlohmann::json::parse(job_tune::ResultJson(job_tune::testing::FasterByPairs()));
  EXPECT_EQ(pairs["gain"]["compared"], "between launches");
  EXPECT_EQ(pairs["gain"]["pairs"], 3);
  EXPECT_EQ(pairs["gain"]["undecided_pairs"], 1);
  EXPECT_EQ(pairs["gain"]["launches"], 0);
  EXPECT_EQ(pairs["pairs"].size(), 4u);
  EXPECT_TRUE(pairs["pairs"][3]["gain"].is_null());
  EXPECT_EQ(pairs["contexts"][0]["tried_by"], "launches");
  EXPECT_EQ(pairs["shares"]["of"], "estimated time");
  EXPECT_EQ(nlohmann::json::parse(job_tune::ResultJson({}))["verdict"], "undecided");
}

}  // namespace
}  // namespace diapason::cli
