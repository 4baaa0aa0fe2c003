#include "policy/merge.h"

#include <gtest/gtest.h>

#include "policy/inline.h"
#include "policy/parse.h"

namespace diapason::policy {
namespace {

Rule Row(uint64_t first, uint64_t last, Config config, int64_t ranks = 8) {
  Rule rule;
  rule.min_bytes = first;
  rule.max_bytes = last;
  rule.config = config;
  rule.nodes = 1;
  rule.ranks = ranks;
  return rule;
}

TEST(MergeLearnedTest, ALearnedRowReplacesWhatItCoversAndGoesFirst) {
  Policy policy;
  policy.rules = {Row(65, 128, {kTree, kLl, 0}), Row(0, 1024, {kRing, kSimple, 0})};
  const Policy merged = MergeLearned(policy, {Row(65, 128, {kRing, kLl, 2})});
  ASSERT_EQ(merged.rules.size(), 2u);
  EXPECT_EQ(merged.rules[0].config, (Config{kRing, kLl, 2}));
  EXPECT_EQ(merged.rules[1].config, (Config{kRing, kSimple, 0}));
}

TEST(MergeLearnedTest, TheDefaultNeedsARowOnlyWhereAnOlderOneWouldDecide) {
  Policy policy;
  EXPECT_TRUE(MergeLearned(policy, {Row(65, 128, {})}).rules.empty());
  policy.rules = {Row(0, 1024, {kRing, kSimple, 0})};
  const Policy merged = MergeLearned(policy, {Row(65, 128, {})});
  ASSERT_EQ(merged.rules.size(), 2u);
  EXPECT_TRUE(merged.rules[0].config.IsDefault());
  // Rows for another shape are not affected.
  policy.rules = {Row(65, 128, {kRing, kSimple, 0}, 4)};
  EXPECT_EQ(MergeLearned(policy, {Row(65, 128, {})}).rules.size(), 1u);
}

TEST(PolicyMarksTest, SurviveBeingWrittenAndReadInBothForms) {
  Policy policy;
  policy.rules = {Row(65, 128, {kTree, kLl, 0}), Row(129, 256, {kRing, kLl, 0})};
  policy.rules[0].safe = true;
  policy.rules[1].remark = "1.31 x the default";
  const auto read = ParseStrictly(PolicyText(policy), "x", {});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(read.value().rules[0].safe);
  EXPECT_FALSE(read.value().rules[1].safe);
  EXPECT_EQ(read.value().rules[0].remark, "");
  EXPECT_EQ(read.value().rules[1].remark, "1.31 x the default");
  const auto decoded = DecodeInline(EncodeInline(policy));
  ASSERT_TRUE(decoded.ok());
  EXPECT_TRUE(decoded.value().rules[0].safe);
  EXPECT_FALSE(decoded.value().rules[1].safe);
}

TEST(PolicyMarksTest, AMarkIsPartOfTheChecksumAndEndsAtAnEmptyLine) {
  Policy policy;
  policy.rules = {Row(65, 128, {kTree, kLl, 0})};
  const uint64_t before = Digest(policy);
  policy.rules[0].safe = true;
  EXPECT_NE(Digest(policy), before);
  const auto apart = ParseStrictly("# numerics: safe\n\nallreduce,1,2,tree,ll,-1,-1,-1\n", "x", {});
  ASSERT_TRUE(apart.ok());
  EXPECT_FALSE(apart.value().rules[0].safe);
}

}  // namespace
}  // namespace diapason::policy
