#include "policy/table.h"

#include <gtest/gtest.h>

#include <set>

#include "policy/parse.h"
#include "policy/testing.h"

namespace diapason::policy {
namespace {

// The definition: rows in their order, the first that matches.
const Rule* FirstMatch(const Policy& policy, const DecisionTable::Options& options,
                       const Question& question) {
  for (const Rule& rule : policy.rules) {
    if (rule.collective != question.collective) continue;
    if (question.bytes < rule.min_bytes || question.bytes > rule.max_bytes) continue;
    const bool shape_fits = options.any_shape_rows_only ? rule.nodes == kAny && rule.ranks == kAny
                                                        : rule.MatchesShape(options.shape);
    if (!shape_fits) continue;
    if (rule.reg_buff != kAny && !options.use_reg_buff_rows) continue;
    if (rule.pipe_ops != kAny && rule.pipe_ops != question.pipe_ops) continue;
    if (rule.reg_buff != kAny && rule.reg_buff != question.reg_buff) continue;
    return &rule;
  }
  return nullptr;
}

void ExpectSameAnswer(const DecisionTable& table, const Policy& policy,
                      const DecisionTable::Options& options, const Question& question) {
  const DecisionTable::Entry* entry = table.Find(question);
  const Rule* rule = FirstMatch(policy, options, question);
  ASSERT_EQ(entry == nullptr, rule == nullptr)
      << question.bytes << " bytes, pipe_ops " << question.pipe_ops << ", reg_buff "
      << question.reg_buff << ", row " << (rule != nullptr ? rule->line : entry->line) << " of\n"
      << PolicyText(policy);
  if (entry == nullptr) return;
  ASSERT_EQ(entry->line, rule->line) << question.bytes << " bytes of\n" << PolicyText(policy);
  ASSERT_EQ(entry->config(), rule->config);
}

// Every size at which something can change, and those beside it.
std::set<uint64_t> Boundaries(const Policy& policy) {
  std::set<uint64_t> sizes{0, 1, UINT64_MAX - 1, UINT64_MAX};
  for (const Rule& rule : policy.rules) {
    for (const uint64_t at : {rule.min_bytes, rule.max_bytes}) sizes.insert({at - 1, at, at + 1});
  }
  return sizes;
}

Rule Row(uint64_t min_bytes, uint64_t max_bytes, int line) {
  Rule rule;
  rule.min_bytes = min_bytes;
  rule.max_bytes = max_bytes;
  rule.config = {kRing, kSimple, line % 64 + 1};
  rule.line = line;
  return rule;
}

Question AllReduce(uint64_t bytes) {
  Question question;
  question.bytes = bytes;
  return question;
}

TEST(TableTest, FindIsTheFirstRowThatMatches) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 2000; ++round) {
    const Library library = kLibraries[Pick(&random, 4)];
    Policy policy = RandomPolicy(library, Pick(&random, 30), &random);
    if (round % 2 == 0) {
      for (Rule& rule : policy.rules) rule.collective = Collective::kAllReduce;
    }
    DecisionTable::Options options;
    options.shape = {int64_t{1} << Pick(&random, 4), int64_t{8} << Pick(&random, 3)};
    options.use_reg_buff_rows = Pick(&random, 2) == 0;
    options.any_shape_rows_only = Pick(&random, 4) == 0;
    const DecisionTable table(policy, options);
    std::set<uint64_t> sizes = Boundaries(policy);
    for (int i = 0; i < 20; ++i) sizes.insert(RandomBytes(&random));
    for (const uint64_t bytes : sizes) {
      Question question = AllReduce(bytes);
      if (round % 2 != 0) question.collective = static_cast<Collective>(Pick(&random, 6));
      for (const int reg_buff : {0, 1}) {
        question.reg_buff = reg_buff;
        question.pipe_ops = static_cast<int>(Pick(&random, 4));
        ExpectSameAnswer(table, policy, options, question);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(TableTest, RowsOnConsecutiveBytesAreAllFound) {
  for (const uint64_t base : {uint64_t{0}, uint64_t{1} << 20, (uint64_t{1} << 40) - 1500}) {
    Policy policy;
    for (int i = 0; i < 3000; ++i) policy.rules.push_back(Row(base + i, base + i, i + 1));
    const DecisionTable table(policy, {});
    for (int i = 0; i < 3000; ++i) {
      const DecisionTable::Entry* entry = table.Find(AllReduce(base + i));
      ASSERT_NE(entry, nullptr) << i;
      ASSERT_EQ(entry->line, i + 1);
    }
    EXPECT_EQ(table.Find(AllReduce(base + 3000)), nullptr);
    EXPECT_EQ(table.Find(AllReduce(base - 1)), nullptr) << "before the first, or the largest size";
  }
}

TEST(TableTest, OneRowOverEverythingHidesTheRowsAfterItOnly) {
  Policy policy;
  for (int i = 0; i < 100; ++i) policy.rules.push_back(Row(i * 1000, i * 1000 + 10, i + 1));
  policy.rules.push_back(Row(0, UINT64_MAX, 101));
  for (int i = 0; i < 100; ++i) policy.rules.push_back(Row(i * 1000 + 50, i * 1000 + 60, i + 102));
  const DecisionTable table(policy, {});
  for (const uint64_t bytes : Boundaries(policy)) {
    const bool early = bytes < 100000 && bytes % 1000 <= 10;
    const DecisionTable::Entry* entry = table.Find(AllReduce(bytes));
    ASSERT_NE(entry, nullptr) << bytes;
    EXPECT_EQ(entry->line, early ? static_cast<int>(bytes / 1000) + 1 : 101) << bytes;
  }
}

TEST(TableTest, AnEmptyPolicyAnswersNothing) {
  const DecisionTable none;
  const DecisionTable empty(Policy{}, {});
  for (int collective = 0; collective < 256; ++collective) {
    Question question = AllReduce(4096);
    question.collective = static_cast<Collective>(collective);
    EXPECT_EQ(none.Find(question), nullptr);
    EXPECT_EQ(empty.Find(question), nullptr);
  }
  EXPECT_EQ(empty.row_count(), 0u);
}

TEST(TableTest, AnUnknownCollectiveHasNoAnswer) {
  Policy policy;
  policy.rules.push_back(Row(0, UINT64_MAX, 1));
  const DecisionTable table(policy, {});
  for (int collective = 5; collective < 256; ++collective) {
    Question question = AllReduce(4096);
    question.collective = static_cast<Collective>(collective);
    EXPECT_EQ(table.Find(question), nullptr) << collective;
  }
}

TEST(TableTest, ThousandsOfRowsTakeLittleMemory) {
  Policy spread;
  Policy with_gaps;
  for (uint64_t i = 0; i < 3000; ++i) {
    spread.rules.push_back(Row(i * i * 997, (i + 1) * (i + 1) * 997 - 1, static_cast<int>(i) + 1));
    with_gaps.rules.push_back(Row(i * i * 997, i * i * 997 + 400, static_cast<int>(i) + 1));
  }
  for (const Policy* policy : {&spread, &with_gaps}) {
    const DecisionTable table(*policy, {});
    EXPECT_EQ(table.row_count(), 3000u);
    EXPECT_LT(table.MemoryBytes(), 256u * 1024);
    EXPECT_GT(table.MemoryBytes(), 3000u * sizeof(DecisionTable::Entry));
    for (const uint64_t bytes : Boundaries(*policy)) {
      ExpectSameAnswer(table, *policy, {}, AllReduce(bytes));
      if (HasFatalFailure()) return;
    }
  }
}

TEST(TableTest, RowsLeftOutAreCountedByWhy) {
  Policy policy;
  const auto add = [&](int64_t nodes, int64_t ranks, int reg_buff) {
    Rule rule = Row(0, 100, static_cast<int>(policy.rules.size()) + 1);
    rule.nodes = nodes;
    rule.ranks = ranks;
    rule.reg_buff = reg_buff;
    policy.rules.push_back(rule);
  };
  add(2, 16, kAny);
  add(4, 32, kAny);
  add(kAny, kAny, 1);
  add(kAny, 16, 0);
  add(2, kAny, 1);
  add(kAny, kAny, kAny);

  DecisionTable::Options options;
  options.shape = {2, 16};
  const DecisionTable plain(policy, options);
  EXPECT_EQ(plain.row_count(), 2u);
  EXPECT_EQ(plain.skipped_reg_buff_rows(), 3u);
  EXPECT_EQ(plain.skipped_shape_rows(), 0u);
  EXPECT_EQ(plain.Find(AllReduce(1))->line, 1);

  options.use_reg_buff_rows = true;
  const DecisionTable with_reg_buff(policy, options);
  EXPECT_EQ(with_reg_buff.row_count(), 5u);
  EXPECT_EQ(with_reg_buff.skipped_reg_buff_rows(), 0u);

  options.any_shape_rows_only = true;
  options.shape = {};
  const DecisionTable any_shape(policy, options);
  EXPECT_EQ(any_shape.row_count(), 2u);
  EXPECT_EQ(any_shape.skipped_shape_rows(), 4u);
  Question question = AllReduce(1);
  EXPECT_EQ(any_shape.Find(question)->line, 6);
  question.reg_buff = 1;
  EXPECT_EQ(any_shape.Find(question)->line, 3);

  options.use_reg_buff_rows = false;
  const DecisionTable fewest(policy, options);
  EXPECT_EQ(fewest.row_count(), 1u);
  EXPECT_EQ(fewest.skipped_shape_rows(), 4u);
  EXPECT_EQ(fewest.skipped_reg_buff_rows(), 1u);
}

TEST(TableTest, RegBuffThatIsNotToldMeetsNoRowThatAsksForIt) {
  Policy policy;
  policy.rules.push_back(Row(0, 100, 1));
  policy.rules.back().reg_buff = 0;
  policy.rules.push_back(Row(0, 100, 2));
  DecisionTable::Options options;
  options.use_reg_buff_rows = true;
  const DecisionTable table(policy, options);
  Question question = AllReduce(1);
  question.reg_buff = kAny;
  EXPECT_EQ(table.Find(question)->line, 2);
}

TEST(TableTest, AMovedTableAnswersAsBefore) {
  Policy policy;
  policy.rules.push_back(Row(0, 100, 1));
  policy.rules.back().pipe_ops = 2;
  policy.rules.push_back(Row(50, 200, 2));
  DecisionTable original(policy, {});
  DecisionTable table = std::move(original);
  DecisionTable assigned;
  assigned = std::move(table);
  Question question = AllReduce(60);
  EXPECT_EQ(assigned.Find(question)->line, 2);
  question.pipe_ops = 2;
  EXPECT_EQ(assigned.Find(question)->line, 1);
  question.bytes = 201;
  EXPECT_EQ(assigned.Find(question), nullptr);
}

TEST(TableTest, RealFilesAnswerAsTheyRead) {
  for (const char* file : kRealFiles) {
    ParseOptions as_rccl;
    as_rccl.library = Library::kRccl;
    const Policy policy = ParseStrictly(ReadTestFile(file), file, as_rccl).value();
    const std::set<uint64_t> sizes = Boundaries(policy);
    for (const Shape shape : {Shape{1, 8}, Shape{2, 16}, Shape{8, 64}, Shape{3, 3}}) {
      DecisionTable::Options options;
      options.shape = shape;
      const DecisionTable table(policy, options);
      size_t i = 0;
      for (const uint64_t bytes : sizes) {
        Question question = AllReduce(bytes);
        question.collective = static_cast<Collective>(++i % kAskedCollectiveCount);
        ExpectSameAnswer(table, policy, options, question);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(ShowRangesTest, RangesCoverAllSizesOnceAndAgreeWithFind) {
  std::mt19937_64 random(12);
  for (int round = 0; round < 400; ++round) {
    const Policy policy = RandomPolicy(Library::kRccl, Pick(&random, 25), &random);
    DecisionTable::Options options;
    options.shape = {2, 16};
    options.use_reg_buff_rows = round % 2 == 0;
    const DecisionTable table(policy, options);
    Question question;
    question.collective = static_cast<Collective>(Pick(&random, kAskedCollectiveCount));
    question.pipe_ops = static_cast<int>(Pick(&random, 3));
    question.reg_buff = static_cast<int>(Pick(&random, 2));
    const std::vector<ShownRange> ranges = ShowRanges(table, policy, question);
    ASSERT_FALSE(ranges.empty());
    EXPECT_EQ(ranges.front().first, 0u);
    EXPECT_EQ(ranges.back().last, UINT64_MAX);
    for (size_t i = 0; i < ranges.size(); ++i) {
      const ShownRange& range = ranges[i];
      ASSERT_LE(range.first, range.last);
      if (i > 0) {
        ASSERT_EQ(range.first, ranges[i - 1].last + 1);
        ASSERT_NE(range.entry, ranges[i - 1].entry) << "two ranges that should be one";
      }
      const uint64_t inside = range.first + (range.last - range.first) / 2;
      for (const uint64_t bytes : {range.first, inside, range.last}) {
        question.bytes = bytes;
        ASSERT_EQ(table.Find(question), range.entry) << bytes;
      }
    }
  }
}

}  // namespace
}  // namespace diapason::policy
