#include "learn/rewards.h"

#include <gtest/gtest.h>

#include <cmath>

namespace diapason::learn {
namespace {

Config Ring(int channels) { return {1, 2, channels, 0}; }

Schedule Three() {
  Schedule schedule;
  schedule.segments = {{{}, 4, true}, {Ring(1), 2, false}, {Ring(1), 6, true}};
  return schedule;
}

TEST(SampleBook, CreditsWhatLiesInOneCountedSegment) {
  SampleBook book;
  book.Open(2, 100, Three());
  EXPECT_TRUE(book.Credit(100, 101, 1e-3));
  EXPECT_TRUE(book.Credit(102, 104, 2e-3));   // an iteration of two calls
  EXPECT_FALSE(book.Credit(103, 105, 1e-3));  // runs into the next segment
  EXPECT_FALSE(book.Credit(104, 105, 1e-3));  // does not count
  EXPECT_TRUE(book.Credit(111, 112, 3e-3));   // the last call
  EXPECT_FALSE(book.Credit(111, 113, 3e-3));  // runs out of the epoch
  EXPECT_FALSE(book.Credit(112, 113, 1e-3));  // after it
  EXPECT_FALSE(book.Credit(99, 100, 1e-3));   // before it
  EXPECT_FALSE(book.Credit(100, 100, 1e-3));  // nothing
  EXPECT_FALSE(book.Credit(100, UINT64_MAX, 1e-3));
  const auto samples = book.Samples(2);
  ASSERT_TRUE(samples.has_value());
  EXPECT_EQ(*samples, (std::vector<std::vector<double>>{{1e-3, 2e-3}, {}, {3e-3}}));
  EXPECT_FALSE(book.Samples(3).has_value());
}

TEST(SampleBook, RefusesTimesThatAreNone) {
  SampleBook book;
  book.Open(0, 0, Three());
  for (const double time : {0.0, -1.0, std::nan(""), HUGE_VAL, 1e9}) {
    EXPECT_FALSE(book.Credit(0, 1, time)) << time;
  }
}

TEST(SampleBook, IsCompleteWhenAllThatCanComeHasCome) {
  SampleBook book;
  book.Open(7, 0, Three());
  for (uint64_t i = 0; i < 4; ++i) book.Credit(i, i + 1, 1e-3);
  for (uint64_t i = 6; i < 11; ++i) book.Credit(i, i + 1, 1e-3);
  EXPECT_FALSE(book.Complete(7, 1));
  EXPECT_TRUE(book.Complete(7, 2));
  book.Credit(11, 12, 1e-3);
  EXPECT_TRUE(book.Complete(7, 1));
  EXPECT_TRUE(book.Complete(7, 0));
  EXPECT_FALSE(book.Complete(8, 1));
}

TEST(SampleBook, KeepsTheNewestEpochs) {
  SampleBook book(3);
  for (uint32_t epoch = 0; epoch < 5; ++epoch) book.Open(epoch, 12 * epoch, Three());
  EXPECT_EQ(book.open(), (std::vector<uint32_t>{2, 3, 4}));
  book.Close(3);
  EXPECT_EQ(book.open(), (std::vector<uint32_t>{2, 4}));
  EXPECT_TRUE(book.Credit(25, 26, 1e-3));
  EXPECT_FALSE(book.Credit(37, 38, 1e-3));
}

TEST(SampleBook, TheFirstSampleAfterAChangeDoesNotCount) {
  const Config tree{kTree, kSimple, 0};
  Schedule schedule;
  schedule.segments = {{{}, 4, true}, {tree, 4, true}, {tree, 2, true}, {{}, 4, true}};
  SampleBook all;
  all.Open(1, 0, schedule);
  EXPECT_TRUE(all.Credit(4, 5, 1e-3)) << "where all ranks are timed it does";
  SampleBook book;
  book.SkipChanges(true);
  book.Open(1, 0, schedule);
  EXPECT_TRUE(book.Credit(0, 1, 1e-3)) << "the default ran before";
  EXPECT_FALSE(book.Credit(4, 5, 1e-3));
  EXPECT_TRUE(book.Credit(5, 6, 1e-3));
  EXPECT_TRUE(book.Credit(8, 9, 1e-3)) << "the same configuration goes on";
  EXPECT_FALSE(book.Credit(10, 12, 1e-3)) << "an iteration of two calls";
  EXPECT_TRUE(book.Credit(12, 14, 1e-3));
  book.Open(2, 14, schedule);
  EXPECT_TRUE(book.Credit(14, 15, 1e-3)) << "the epoch before ended with it";
  schedule.segments = {{tree, 4, true}, {{}, 1, true}};
  book.Open(3, 28, schedule);
  EXPECT_FALSE(book.Credit(28, 29, 1e-3));
  EXPECT_TRUE(book.Credit(29, 30, 1e-3));
  EXPECT_TRUE(book.Credit(32, 33, 1e-3)) << "the only one of its segment";
}

TEST(SampleBook, ALongSegmentNeedsLittleMemory) {
  SampleBook book;
  Schedule schedule;
  schedule.segments = {{{}, 100000, true}};
  book.Open(0, 0, schedule);
  for (uint64_t i = 0; i < 100000; ++i) ASSERT_TRUE(book.Credit(i, i + 1, 1e-3));
  EXPECT_LE(book.Samples(0)->at(0).size(), 4096u);
  EXPECT_TRUE(book.Complete(0, 1));
}

TEST(BlockResults, IsTheLowerQuartileWithoutTheFirst) {
  const auto results = BlockResults({{9, 1, 2, 3, 4, 5}, {4, 2}, {}});
  ASSERT_EQ(results.size(), 3u);
  EXPECT_DOUBLE_EQ(results[0].seconds, 2);
  EXPECT_EQ(results[0].samples, 5u);
  EXPECT_DOUBLE_EQ(results[1].seconds, 2.5);
  EXPECT_EQ(results[1].samples, 2u);
  EXPECT_EQ(results[2].seconds, 0);
  EXPECT_EQ(results[2].samples, 0u);
}

TEST(BlockResults, AShortBlockIsNotSpoiltByASpike) {
  const auto results = BlockResults({{1, 9}, {9, 1.2, 1}, {1, 2}});
  EXPECT_DOUBLE_EQ(results[0].seconds, 1);
  EXPECT_EQ(results[0].samples, 1u) << "a sample that is left out is no evidence";
  EXPECT_DOUBLE_EQ(results[1].seconds, 1.05);
  EXPECT_EQ(results[1].samples, 2u);
  EXPECT_DOUBLE_EQ(results[2].seconds, 1.25) << "noise, not a spike";
  EXPECT_EQ(results[2].samples, 2u);
}

TEST(Results, TravelAsText) {
  const std::vector<SegmentResult> results = {{1.25e-4, 3}, {0, 0}, {3.5, 1}};
  const auto read = ParseResults(ResultsText(results), 3);
  ASSERT_TRUE(read.ok()) << read.status().message();
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_DOUBLE_EQ(read.value()[i].seconds, results[i].seconds);
    EXPECT_EQ(read.value()[i].samples, results[i].samples);
  }
  EXPECT_TRUE(ParseResults(ResultsText({}), 0).ok());
}

TEST(Results, ThatAreDamagedAreRefused) {
  for (const std::string text :
       {"",     "1",     "x",      "1x",      "x1",    "1x1;", ";1x1", "1x1;1x1", "-1x1",
        "+1x1", "nanx1", "infx1",  "1e400x1", "1e9x1", "0x1",  "1x0",  "1x-1",    "1x4294967296",
        "1x1 ", " 1x1",  "0x10x1", "1,5x1",   "1x1\n"}) {
    EXPECT_FALSE(ParseResults(text, 1).ok()) << text;
  }
  EXPECT_FALSE(ParseResults(std::string("1x1\0", 4), 1).ok());
  EXPECT_FALSE(ParseResults(std::string(1 << 20, '1'), 1).ok());
  EXPECT_FALSE(ParseResults("1x1", 2).ok());
  EXPECT_TRUE(ParseResults("1x1", 1).ok());
}

TEST(Results, OfAllRanksAreTheSlowest) {
  const std::vector<std::vector<SegmentResult>> ranks = {
      {{1, 3}, {5, 2}, {1, 1}}, {{2, 4}, {0, 0}, {1, 1}}, {{1.5, 2}, {1, 1}}};
  const auto slowest = SlowestOf(ranks);
  ASSERT_EQ(slowest.size(), 3u);
  EXPECT_EQ(slowest[0].seconds, 2);
  EXPECT_EQ(slowest[0].samples, 2u);
  EXPECT_EQ(slowest[1].samples, 0u);
  EXPECT_EQ(slowest[1].seconds, 0);
  EXPECT_EQ(slowest[2].samples, 0u);  // one rank has no third segment
  EXPECT_DOUBLE_EQ(SkewOf(ranks), 2);
  EXPECT_EQ(SkewOf({}), 1);
  EXPECT_TRUE(SlowestOf({}).empty());
}

TEST(RewardLine, IsRead) {
  for (const std::string line :
       {"allreduce,4194304,1,8,12.34", " All_Reduce , 4194304 ,1, 8 , 12.34\r",
        "ALLREDUCE,4194304,1,8,1234e-2"}) {
    const auto read = ParseRewardLine(line);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read.value().collective, Collective::kAllReduce);
    EXPECT_EQ(read.value().bytes, 4194304u);
    EXPECT_EQ(read.value().nodes, 1);
    EXPECT_EQ(read.value().ranks, 8);
    EXPECT_DOUBLE_EQ(read.value().seconds, 0.01234);
  }
}

TEST(RewardLine, MayNameItsCalls) {
  const Result<RewardLine> plain = ParseRewardLine("allreduce,4,1,8,1");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain.value().call, 0u);
  const Result<RewardLine> one = ParseRewardLine("allreduce,4,1,8,1, 7");
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one.value().call, 7u);
  EXPECT_EQ(one.value().calls, 1u);
  const Result<RewardLine> several = ParseRewardLine("allreduce,4,1,8,1,7,7");
  ASSERT_TRUE(several.ok());
  EXPECT_EQ(several.value().calls, 7u);
}

TEST(RewardLine, ThatIsNoneIsRefused) {
  for (const std::string line : {"",
                                 ",,,,",
                                 "collType,nBytes,nNodes,nRanks,latency_ms",
                                 "allreduce,4,1,8",
                                 "allreduce,4,1,8,1,0",
                                 "allreduce,4,1,8,1,-1",
                                 "allreduce,4,1,8,1,",
                                 "allreduce,4,1,8,1,1.5",
                                 "allreduce,4,1,8,1,7,0",
                                 "allreduce,4,1,8,1,7,8",
                                 "allreduce,4,1,8,1,7,1,1",
                                 "alreduce,4,1,8,1",
                                 "allreduce,0,1,8,1",
                                 "allreduce,-4,1,8,1",
                                 "allreduce,4.5,1,8,1",
                                 "allreduce,99999999999999999999,1,8,1",
                                 "allreduce,4,0,8,1",
                                 "allreduce,4,9,8,1",
                                 "allreduce,4,1,-8,1",
                                 "allreduce,4,1,8,0",
                                 "allreduce,4,1,8,-1",
                                 "allreduce,4,1,8,nan",
                                 "allreduce,4,1,8,inf",
                                 "allreduce,4,1,8,1e300",
                                 "allreduce,4,1,8,1e-300",
                                 "allreduce,4,1,8,1ms",
                                 "allreduce,4,1,8,0x1p3"}) {
    EXPECT_FALSE(ParseRewardLine(line).ok()) << line;
  }
  EXPECT_FALSE(ParseRewardLine(std::string("allreduce,4,1,8,1\0002", 19)).ok());
  EXPECT_FALSE(ParseRewardLine(std::string(100000, ',')).ok());
}

TEST(RewardLines, ComeInPiecesOfAnySize) {
  const std::string text =
      "allreduce,1024,1,8,1.5\r\n\n# a remark\nnonsense\nbroadcast,2048,2,8,2\n"
      "allreduce,1024,1,8,";
  for (size_t size = 1; size <= text.size(); ++size) {
    RewardLines lines;
    std::vector<RewardLine> all;
    for (size_t at = 0; at < text.size(); at += size) {
      for (const RewardLine& line : lines.Feed(std::string_view(text).substr(at, size))) {
        all.push_back(line);
      }
    }
    ASSERT_EQ(all.size(), 2u) << size;
    EXPECT_EQ(all[1].collective, Collective::kBroadcast);
    EXPECT_EQ(lines.garbage(), 1u);
    const auto rest = lines.Feed("7\n");
    ASSERT_EQ(rest.size(), 1u);
    EXPECT_DOUBLE_EQ(rest[0].seconds, 7e-3);
  }
}

TEST(RewardLines, SkipALineThatIsTooLong) {
  RewardLines lines;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(lines.Feed(std::string(1000, 'x')).empty());
  EXPECT_EQ(lines.garbage(), 1u);
  EXPECT_EQ(lines.Feed("x\nallreduce,1024,1,8,1\n").size(), 1u);
  EXPECT_EQ(lines.garbage(), 1u);
  EXPECT_TRUE(lines.Feed(std::string("a\0b,1,1,1,1\n", 12)).empty());
  EXPECT_EQ(lines.garbage(), 2u);
}

TEST(RewardLines, AReplacedFileLeavesNoHalfLine) {
  RewardLines lines;
  EXPECT_TRUE(lines.Feed("allreduce,10").empty());
  lines.Restart();
  const auto read = lines.Feed("allreduce,24,1,8,1\n");
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].bytes, 24u);
}

}  // namespace
}  // namespace diapason::learn
