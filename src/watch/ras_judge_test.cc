#include "watch/ras_judge.h"

#include <gtest/gtest.h>

#include "watch/fake_ras.h"

namespace diapason::watch {
namespace {

class RasJudgeTest : public testing::Test {
 protected:
  // One answer; the processes 100 + rank are local.
  void Answer(double now_s, const std::vector<FakeRasRank>& ranks) {
    const auto answer = ParseRasJson(FakeRasJson(ranks));
    ASSERT_TRUE(answer.ok());
    judge_.SeeAnswer(now_s, answer.value(), {"127.0.0.1"});
  }
  void Processes(double now_s, const std::string& states) {
    std::vector<LocalRank> locals;
    for (size_t rank = 0; rank < states.size(); ++rank) {
      LocalRank local;
      local.process.pid = 100 + static_cast<pid_t>(rank);
      local.process.inner_pid = local.process.pid;
      local.process.rank = static_cast<int>(rank);
      local.process.world = static_cast<int>(states.size());
      local.state = states[rank];
      locals.push_back(local);
    }
    judge_.SeeProcesses(now_s, locals);
  }
  static std::vector<FakeRasRank> Ranks(std::initializer_list<uint64_t> counts) {
    std::vector<FakeRasRank> ranks;
    for (const uint64_t count : counts) {
      const auto rank = static_cast<int>(ranks.size());
      ranks.push_back({rank, 100 + rank, count});
    }
    return ranks;
  }

  RasJudge judge_;
};

TEST_F(RasJudgeTest, DifferencesThatMoveAreNoLateness) {
  for (int i = 0; i < 40; ++i) {
    const auto count = static_cast<uint64_t>(100 + 7 * i);
    // One rank is always far behind, and advances.
    Answer(i, Ranks({count + 50, count, count + 60, count + 55}));
    EXPECT_FALSE(IsBlame(judge_.Judge(i).kind)) << i;
  }
  EXPECT_EQ(judge_.Judge(39).text, "all 4 ranks advance");
}

TEST_F(RasJudgeTest, APauseAsLongAsThoseBeforeIsNoLateness) {
  // Every iteration takes ten seconds; one rank is always the first.
  for (int i = 0; i < 100; ++i) {
    const auto count = static_cast<uint64_t>(100 + i / 10);
    Answer(i, Ranks({count, count + (i % 10 > 8 ? 1u : 0u), count}));
    EXPECT_FALSE(IsBlame(judge_.Judge(i).kind)) << i;
  }
}

TEST_F(RasJudgeTest, ALateRankIsNamedOnceTheOthersStandStill) {
  for (int i = 0; i < 5; ++i) Answer(i, Ranks({100u + 9u * i, 101u + 9u * i, 100u + 9u * i}));
  // The others launch two more collectives before they wait.
  Answer(5, Ranks({150, 151, 141}));
  Answer(6, Ranks({152, 152, 141}));
  for (int i = 7; i < 9; ++i) {
    Answer(i, Ranks({152, 152, 141}));
    EXPECT_FALSE(IsBlame(judge_.Judge(i).kind)) << i;
  }
  Answer(9, Ranks({152, 152, 141}));
  const RasVerdict verdict = judge_.Judge(9);
  EXPECT_EQ(verdict.kind, RasVerdictKind::kBehind);
  EXPECT_EQ(verdict.ranks, std::vector<int>({2}));
  EXPECT_EQ(verdict.waiting, std::vector<int>({0, 1}));
  EXPECT_EQ(verdict.text,
            "rank 2 (127.0.0.1:102) has not come to AllReduce 142; ranks 0, 1 wait for it in "
            "AllReduce 142 of communicator 0x8a1c00ff, for 3 s");
  Answer(10, Ranks({153, 153, 153}));
  EXPECT_FALSE(IsBlame(judge_.Judge(10).kind));
}

TEST_F(RasJudgeTest, EqualCountsThatStandStillAreIdle) {
  for (int i = 0; i < 30; ++i) Answer(i, Ranks({100, 100, 100}));
  const RasVerdict verdict = judge_.Judge(29);
  EXPECT_EQ(verdict.kind, RasVerdictKind::kIdle);
  EXPECT_EQ(verdict.text, "no rank has launched a collective for 29 s, and none is behind");
}

TEST_F(RasJudgeTest, OtherCollectivesAreSaidAsSuch) {
  std::vector<FakeRasRank> ranks = Ranks({100, 100, 99});
  ranks[2].all_gather = 1;
  for (int i = 0; i < 10; ++i) Answer(i, ranks);
  EXPECT_EQ(judge_.Judge(9).kind, RasVerdictKind::kDiffer);
}

TEST_F(RasJudgeTest, AStoppedProcessIsNamedAtOnceAndWhoWaitsLater) {
  Processes(0, "SSS");
  Answer(0, Ranks({100, 100, 100}));
  Answer(1, Ranks({110, 110, 110}));
  Processes(1.5, "STS");
  Processes(2.6, "STS");
  EXPECT_EQ(judge_.Judge(2.6).text, "rank 1 (127.0.0.1:101) is stopped");
  std::vector<FakeRasRank> ranks = Ranks({118, 0, 118});
  ranks[1].absence = RasAbsence::kUnresponsive;
  for (int i = 8; i < 11; ++i) Answer(i, ranks);
  EXPECT_EQ(judge_.Judge(10).text,
            "rank 1 (127.0.0.1:101) is stopped; ranks 0, 2 wait for it in AllReduce 118 of "
            "communicator 0x8a1c00ff");
  Processes(11, "SSS");
  Answer(12, Ranks({130, 130, 130}));
  EXPECT_FALSE(IsBlame(judge_.Judge(12).kind));
}

TEST_F(RasJudgeTest, AGoneProcessIsNamedWhileTheOthersStay) {
  Processes(0, "SSS");
  Answer(0, Ranks({100, 100, 100}));
  Answer(1, Ranks({110, 110, 110}));
  Processes(2, "SSX");
  std::vector<FakeRasRank> ranks = Ranks({118, 118, 0});
  ranks[2].absence = RasAbsence::kUnresponsive;
  for (int i = 3; i < 6; ++i) Answer(i, ranks);
  EXPECT_EQ(judge_.Judge(6).text,
            "rank 2 (127.0.0.1:102) is gone; ranks 0, 1 wait for it in AllReduce 118 of "
            "communicator 0x8a1c00ff");
}

TEST_F(RasJudgeTest, RanksThatLeaveAtTheEndAreNotBlamed) {
  Processes(0, "SSS");
  std::vector<FakeRasRank> ranks = Ranks({118, 118, 118});
  for (FakeRasRank& rank : ranks) rank.ending = true;
  Answer(0, ranks);
  Processes(1, "SSX");
  ranks[2].absence = RasAbsence::kUnresponsive;
  for (int i = 2; i < 9; ++i) Answer(i, ranks);
  EXPECT_NE(judge_.Judge(9).kind, RasVerdictKind::kGone);
}

TEST_F(RasJudgeTest, ACommunicatorThatIsGivenUpAfterAnEndNamesThatProcess) {
  Processes(0, "SSS");
  Answer(0, Ranks({100, 100, 100}));
  Processes(1, "SXS");
  std::vector<FakeRasRank> ranks = Ranks({118, 0, 118});
  ranks[1].absence = RasAbsence::kUnresponsive;
  Answer(2, ranks);
  const auto none = ParseRasJson("{\"communicators\": []}");
  ASSERT_TRUE(none.ok());
  judge_.SeeAnswer(3, none.value(), {});
  EXPECT_EQ(judge_.Judge(3).text,
            "rank 1 (process 101) is gone; the others have given up the communicator");
}

TEST_F(RasJudgeTest, ACommunicatorThatEndsBeforeItsProcessesIsAnOrdinaryEnd) {
  Processes(0, "SSS");
  Answer(0, Ranks({100, 100, 100}));
  Processes(1, "SXS");
  const auto none = ParseRasJson("{\"communicators\": []}");
  ASSERT_TRUE(none.ok());
  judge_.SeeAnswer(2, none.value(), {});
  for (int i = 3; i < 9; ++i) EXPECT_FALSE(IsBlame(judge_.Judge(i).kind)) << i;
}

TEST_F(RasJudgeTest, AllEndedNamesTheFirst) {
  Processes(0, "SSS");
  Processes(1, "SXS");
  Processes(3, "XXX");
  const RasVerdict verdict = judge_.Judge(3);
  EXPECT_EQ(verdict.kind, RasVerdictKind::kEnded);
  EXPECT_EQ(verdict.text,
            "all 3 local ranks have ended: rank 1 (process 101) first, 2.0 s before the next");
  EXPECT_EQ(RasFinding(verdict).severity, Severity::kNote);
}

TEST_F(RasJudgeTest, ASilentRankElsewhereIsNamedIfTheOthersWait) {
  std::vector<FakeRasRank> ranks = Ranks({100, 100});
  ranks.push_back({2, 7, 100});
  ranks[2].host = "10.0.0.9";
  Answer(0, ranks);
  ranks[2].absence = RasAbsence::kUnresponsive;
  ranks[0].all_reduce = ranks[1].all_reduce = 101;
  for (int i = 1; i < 4; ++i) Answer(i, ranks);
  EXPECT_EQ(judge_.Judge(4).text,
            "rank 2 (10.0.0.9:7) is unresponsive to RAS for 3 s; ranks 0, 1 wait for it in "
            "AllReduce 101 of communicator 0x8a1c00ff");
}

}  // namespace
}  // namespace diapason::watch
