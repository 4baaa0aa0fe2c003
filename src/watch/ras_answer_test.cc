#include "watch/ras_answer.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "watch/fake_ras.h"

namespace diapason::watch {
namespace {

const RasRank& RankOf(const RasAnswer& answer, int rank) {
  for (const RasRank& found : answer.communicators.at(0).ranks) {
    if (found.rank == rank) return found;
  }
  static const RasRank none;
  return none;
}

TEST(RasAnswer, JsonOfAHealthyJob) {
  const auto answer = ParseRasAnswer(FakeRasJson({{0, 100, 118}, {1, 101, 118}, {2, 102, 117}}));
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_TRUE(answer.value().json);
  EXPECT_EQ(answer.value().nccl_version, "2.28.9+cuda13.0");
  EXPECT_DOUBLE_EQ(answer.value().collection_s, 0.012);
  ASSERT_EQ(answer.value().communicators.size(), 1u);
  const RasCommunicator& communicator = answer.value().communicators[0];
  EXPECT_EQ(communicator.hash, "0x8a1c00ff");
  EXPECT_EQ(communicator.size, 3);
  ASSERT_EQ(communicator.ranks.size(), 3u);
  EXPECT_EQ(communicator.ranks[2].pid, 102);
  EXPECT_EQ(communicator.ranks[2].host, "127.0.0.1");
  ASSERT_EQ(answer.value().functions.size(), 5u);
  EXPECT_EQ(answer.value().functions[4], "AllReduce");
  EXPECT_EQ(communicator.ranks[2].counts[4], 117u);
  EXPECT_EQ(communicator.ranks[2].absence, RasAbsence::kNone);
}

// NCCL 2.28.7 to 2.28.9 write no comma after "nvml_dev" of a missing rank.
TEST(RasAnswer, JsonWithAMissingRankWithAndWithoutTheComma) {
  for (const bool comma : {false, true}) {
    FakeRasRank missing{1, 101, 0};
    missing.absence = RasAbsence::kUnresponsive;
    FakeRasRank dead{2, 102, 0};
    dead.absence = RasAbsence::kDead;
    FakeRasRank left{3, 103, 0};
    left.absence = RasAbsence::kLeft;
    const auto answer = ParseRasAnswer(FakeRasJson({{0, 100, 7}, missing, dead, left}, comma));
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    EXPECT_EQ(RankOf(answer.value(), 0).absence, RasAbsence::kNone);
    EXPECT_EQ(RankOf(answer.value(), 1).absence, RasAbsence::kUnresponsive);
    EXPECT_EQ(RankOf(answer.value(), 1).pid, 101);
    EXPECT_EQ(RankOf(answer.value(), 2).absence, RasAbsence::kDead);
    EXPECT_EQ(RankOf(answer.value(), 3).absence, RasAbsence::kLeft);
    EXPECT_TRUE(RankOf(answer.value(), 1).counts.empty());
  }
}

TEST(RasAnswer, TextOfAHealthyJobNamesNoRanks) {
  const auto answer = ParseRasAnswer(FakeRasText({{0, 100, 9}, {1, 101, 9}, {2, 102, 9}}));
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_FALSE(answer.value().json);
  EXPECT_EQ(answer.value().nccl_version, "2.26.2+cuda12.8");
  ASSERT_EQ(answer.value().communicators.size(), 1u);
  EXPECT_EQ(answer.value().communicators[0].size, 3);
  EXPECT_EQ(answer.value().communicators[0].hash, "");
  EXPECT_TRUE(answer.value().communicators[0].ranks.empty());
}

TEST(RasAnswer, TextNamesTheRankWithAnotherCountAndTheRestFollows) {
  const auto answer =
      ParseRasAnswer(FakeRasText({{0, 100, 118}, {1, 101, 118}, {2, 102, 117}, {3, 103, 118}}));
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  ASSERT_EQ(answer.value().functions.size(), 1u);
  EXPECT_EQ(answer.value().functions[0], "AllReduce");
  EXPECT_EQ(answer.value().communicators[0].hash, "0x8a1c00ff");
  ASSERT_EQ(answer.value().communicators[0].ranks.size(), 4u);
  EXPECT_EQ(RankOf(answer.value(), 2).counts[0], 117u);
  EXPECT_EQ(RankOf(answer.value(), 2).pid, 102);
  EXPECT_EQ(RankOf(answer.value(), 2).host, "127.0.0.1");
  EXPECT_EQ(RankOf(answer.value(), 3).counts[0], 118u);
  EXPECT_EQ(RankOf(answer.value(), 3).pid, -1);
}

TEST(RasAnswer, TextWithTwoEqualGroupsLeavesTheCountsOpen) {
  const auto answer =
      ParseRasAnswer(FakeRasText({{0, 100, 118}, {1, 101, 118}, {2, 102, 117}, {3, 103, 117}}));
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  for (const RasRank& rank : answer.value().communicators[0].ranks) {
    EXPECT_TRUE(rank.counts.empty()) << rank.rank;
  }
}

TEST(RasAnswer, TextWithMissingAndDeadRanks) {
  FakeRasRank missing{1, 101, 0};
  missing.absence = RasAbsence::kUnresponsive;
  FakeRasRank dead{2, 102, 0};
  dead.absence = RasAbsence::kDead;
  const auto answer = ParseRasAnswer(FakeRasText({{0, 100, 7}, missing, dead, {3, 103, 7}}));
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(RankOf(answer.value(), 1).absence, RasAbsence::kUnresponsive);
  EXPECT_EQ(RankOf(answer.value(), 1).pid, 101);
  EXPECT_EQ(RankOf(answer.value(), 2).absence, RasAbsence::kDead);
}

// Every prefix of an answer is refused or is the same answer, and every damaged byte is survived.
TEST(RasAnswer, CutAndDamagedAnswers) {
  FakeRasRank missing{1, 101, 0};
  missing.absence = RasAbsence::kDead;
  const std::vector<FakeRasRank> ranks = {{0, 100, 118}, missing, {2, 102, 117}, {3, 103, 118}};
  for (const std::string& whole : {FakeRasJson(ranks), FakeRasText(ranks)}) {
    const size_t needed = whole[0] == '{' ? whole.rfind('}') + 1 : whole.find("Warnings") + 8;
    for (size_t size = 0; size < whole.size(); ++size) {
      const auto cut = ParseRasAnswer(std::string_view(whole).substr(0, size));
      EXPECT_EQ(cut.ok(), size >= needed) << size << ": " << whole.substr(0, size);
    }
    for (size_t at = 0; at < whole.size(); ++at) {
      for (const char byte : {'\0', '"', '{', ']', '9', '-', '\n', '\xff'}) {
        std::string damaged = whole;
        damaged[at] = byte;
        const auto answer = ParseRasAnswer(damaged);
        if (!answer.ok()) {
          EXPECT_FALSE(answer.status().message().empty());
        }
      }
    }
  }
}

TEST(RasAnswer, GarbageIsRefused) {
  for (const char* text : {"", "\n", "garbage", "{", "{}", "[]", "[1]", "\"x\"", "HTTP/1.1 400\r\n",
                           "{\"communicators\": 3}", "{\"communicators\": [}", "{\"a\" {}}{}"}) {
    EXPECT_FALSE(ParseRasAnswer(text).ok()) << text;
  }
  EXPECT_FALSE(ParseRasAnswer(std::string(100000, '[')).ok());
  EXPECT_FALSE(ParseRasAnswer("{" + std::string(100000, '{')).ok());
}

TEST(RasAnswer, TooMuchIsRefused) {
  std::string ranks = "{\"communicators\": [{\"ranks\": [";
  for (size_t i = 0; i <= kMostRasRanks; ++i) ranks += "{},";
  EXPECT_FALSE(ParseRasAnswer(ranks + "]}]}").ok());
  EXPECT_FALSE(ParseRasAnswer(std::string(kMostRasBytes + 1, ' ')).ok());
  const std::string table =
      "NCCL version 2.26.2\nGroup  x\n    #  in group  per comm\n"
      "    0  99999999  1  1  4  4  RUNNING  OK\n\nErrors\n\nWarnings\n";
  EXPECT_FALSE(ParseRasAnswer(table).ok());
}

}  // namespace
}  // namespace diapason::watch
