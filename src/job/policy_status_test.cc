#include "job/policy_status.h"

#include <gtest/gtest.h>

namespace diapason::job {
namespace {

policy::Policy PolicyOf(const std::string& fingerprint) {
  policy::Policy policy;
  policy.header.fingerprint = fingerprint;
  policy::Rule rule;
  rule.collective = Collective::kAllReduce;
  rule.min_bytes = 1024;
  rule.max_bytes = 4096;
  rule.line = 3;
  policy.rules.push_back(rule);
  return policy;
}

journal::JournalContents JournalOf(int version, uint64_t bytes, double seconds, double others) {
  journal::JournalContents contents;
  journal::JournalComm communicator;
  communicator.number = 1;
  communicator.library_version = version;
  communicator.shape = {1, 4};
  contents.by_number[1] = 0;
  contents.communicators.push_back(communicator);
  for (const bool covered : {true, false}) {
    journal::JournalRecord record;
    record.communicator = 1;
    record.collective = static_cast<uint8_t>(Collective::kAllReduce);
    record.kind = journal::RecordKind::kDecision;
    record.bytes = covered ? bytes : 1 << 20;
    record.reason = covered ? Reason::kRow : Reason::kNoRow;
    record.applied = covered;
    contents.records.push_back(record);
    record.kind = journal::RecordKind::kRan;
    record.seconds = covered ? seconds : others;
    contents.records.push_back(record);
  }
  return contents;
}

TEST(PolicyStatusTest, APolicyThatFitsHasNoReasonToTuneAgain) {
  PolicyStatusInput input{PolicyOf("4x H200"), "4x H200", {"2.28.9"}, {}};
  input.journals.push_back(JournalOf(22809, 2048, 0.9, 0.1));
  const PolicyStatus status = JudgePolicy(input);
  EXPECT_TRUE(status.reasons.empty()) << status.reasons.front();
  EXPECT_TRUE(status.unknown.empty());
  EXPECT_EQ(status.calls, 2u);
  EXPECT_EQ(status.covered_calls, 1u);
  EXPECT_NEAR(status.CoveredShare(), 0.9, 1e-12);
  EXPECT_EQ(status.rows_used, 1u);
  ASSERT_EQ(status.uncovered.size(), 1u);
  EXPECT_EQ(status.uncovered[0].bytes, 1u << 20);
}

TEST(PolicyStatusTest, AnotherMachineLibraryAndOtherCallsAreReasons) {
  PolicyStatusInput input{PolicyOf("4x H200"), "4x H100", {"2.28.3"}, {}};
  input.journals.push_back(JournalOf(22809, 2048, 0.1, 0.9));
  const PolicyStatus status = JudgePolicy(input);
  ASSERT_EQ(status.reasons.size(), 3u);
  EXPECT_EQ(status.reasons[0], "it was made for '4x H200', this machine is '4x H100'");
  EXPECT_EQ(status.reasons[1], "it was made with version 2.28.3 of the library, jobs run 2.28.9");
  EXPECT_EQ(status.reasons[2],
            "10 % of the time of the calls run on its rows: jobs make other calls now");
}

TEST(PolicyStatusTest, WhatIsNotRecordedIsSaidAndNotJudged) {
  const PolicyStatus status = JudgePolicy({PolicyOf(""), "", {}, {}});
  EXPECT_TRUE(status.reasons.empty());
  EXPECT_EQ(status.unknown.size(), 3u);
  EXPECT_EQ(status.CoveredShare(), 1);
}

}  // namespace
}  // namespace diapason::job
