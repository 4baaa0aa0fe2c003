#include "agree/join.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "agree/join_testing.h"
#include "agree/stores.h"
#include "agree/testing.h"
#include "base/encoding.h"

namespace diapason::agree {
namespace {

TEST_F(JoinTest, AllTogetherWithOneOffer) {
  const auto keep = Open();
  const auto outcomes = JoinAll(Ranks(7));
  for (const JoinOutcome& outcome : outcomes) {
    EXPECT_TRUE(outcome.together) << outcome.why_not;
    EXPECT_EQ(outcome.offer, outcomes[0].offer);
    EXPECT_EQ(outcome.prefix, "c1f.0.");
    EXPECT_EQ(outcome.why_not, "");
  }
  EXPECT_TRUE(outcomes[0].offer.starts_with("offer of "));
}

TEST_F(JoinTest, RanksThatDoNotKnowTheirNumbersTakeSlots) {
  const auto keep = Open();
  std::vector<JoinRequest> requests = Ranks(6);
  for (JoinRequest& request : requests) {
    request.rank = kUnknownRank;
    request.offer = "the same";
  }
  // The id comes again: the slots of the generation before are taken.
  for (int generation = 0; generation < 3; ++generation) {
    for (const JoinOutcome& outcome : JoinAll(requests)) {
      ASSERT_TRUE(outcome.together) << outcome.why_not;
      EXPECT_EQ(outcome.offer, "the same");
      EXPECT_EQ(outcome.prefix, Format("c1f.{}.", generation));
    }
  }
  requests[2].alike = "build=2 library=2.28.9 profiler=5";
  for (JoinRequest& request : requests) request.comm_id = 0x77;
  for (const JoinOutcome& outcome : JoinAll(requests)) {
    EXPECT_FALSE(outcome.together);
    EXPECT_NE(outcome.why_not.find("build="), std::string::npos) << outcome.why_not;
  }
}

TEST_F(JoinTest, OneRankWithoutANumberThatDoesNotComeKeepsAllOff) {
  const auto keep = Open();
  std::vector<JoinRequest> requests = Ranks(3);
  requests.pop_back();
  for (JoinRequest& request : requests) {
    request.rank = kUnknownRank;
    request.limit = milliseconds(50);
  }
  for (const JoinOutcome& outcome : JoinAll(requests)) {
    EXPECT_FALSE(outcome.together);
    EXPECT_NE(outcome.why_not.find("not come within"), std::string::npos) << outcome.why_not;
  }
}

TEST_F(JoinTest, RanksThatDoNotDependOnTheOthersGoAloneWhereNotAllCome) {
  const auto keep = Open();
  std::vector<JoinRequest> requests = Ranks(4);
  requests.pop_back();
  for (JoinRequest& request : requests) {
    request.rank = kUnknownRank;
    request.limit = milliseconds(50);
    request.missing = JoinRequest::Missing::kGoAlone;
  }
  for (const JoinOutcome& outcome : JoinAll(requests)) {
    EXPECT_FALSE(outcome.together);
    EXPECT_TRUE(outcome.alone);
  }
  // Where all come and differ, none of them goes on its own.
  requests = Ranks(3);
  requests[1].alike = "build=2";
  for (JoinRequest& request : requests) {
    request.comm_id = 0x99;
    request.rank = kUnknownRank;
    request.missing = JoinRequest::Missing::kGoAlone;
  }
  for (const JoinOutcome& outcome : JoinAll(requests)) {
    EXPECT_FALSE(outcome.together);
    EXPECT_FALSE(outcome.alone);
  }
}

TEST_F(JoinTest, OneRankAlone) {
  const auto outcomes = JoinAll(Ranks(1));
  EXPECT_TRUE(outcomes[0].together);
  EXPECT_EQ(outcomes[0].offer, "offer of 0");
}

TEST_F(JoinTest, TheSameIdAgainIsANewGeneration) {
  const auto keep = Open();
  for (int generation = 0; generation < 5; ++generation) {
    for (const JoinOutcome& outcome : JoinAll(Ranks(3))) {
      EXPECT_TRUE(outcome.together);
      EXPECT_EQ(outcome.prefix, Format("c1f.{}.", generation));
    }
  }
}

TEST_F(JoinTest, ForgettingACommunicatorDoesNotFreeItsGeneration) {
  const auto keep = Open();
  keep->Forget(JoinAll(Ranks(2))[0].prefix);
  EXPECT_EQ(JoinAll(Ranks(2))[0].prefix, "c1f.1.");
}

TEST_F(JoinTest, ADifferenceIsNamedAndTurnsAllRanksOff) {
  const auto keep = Open();  // a rank that joins after the decision must find it
  auto requests = Ranks(4);
  requests[2].alike = "build=1 library=2.30.7 profiler=5";
  for (const JoinOutcome& outcome : JoinAll(requests)) {
    EXPECT_FALSE(outcome.together);
    EXPECT_EQ(outcome.offer, "");
    EXPECT_EQ(outcome.why_not, "rank 0 has library=2.28.9, rank 2 has library=2.30.7");
  }
}

TEST_F(JoinTest, AnotherNumberOfRanksIsADifference) {
  const auto keep = Open();  // a rank that joins after the decision must find it
  auto requests = Ranks(3);
  requests[1].ranks = 4;
  for (const JoinOutcome& outcome : JoinAll(requests)) {
    EXPECT_FALSE(outcome.together);
    EXPECT_EQ(outcome.why_not, "rank 0 has ranks=3, rank 1 has ranks=4");
  }
}

TEST_F(JoinTest, AMissingRankIsNamedAndALateOneIsOffToo) {
  const auto keep = Open();
  auto requests = Ranks(8);
  const JoinRequest late = requests[3];
  requests.erase(requests.begin() + 3);
  // Only the last one is impatient, and it comes when the six others are there.
  JoinRequest impatient = requests.back();
  impatient.limit = milliseconds(100);
  requests.pop_back();
  JoinOutcome last;
  std::thread judge([&] {
    for (const JoinRequest& request : requests) {
      while (!keep->Read(Format("j1f.0.{}", request.rank)).value().has_value()) {
        std::this_thread::sleep_for(milliseconds(1));
      }
    }
    last = JoinAll({impatient})[0];
  });
  auto outcomes = JoinAll(requests);
  judge.join();
  outcomes.push_back(last);
  for (const JoinOutcome& outcome : outcomes) {
    EXPECT_FALSE(outcome.together);
    EXPECT_TRUE(outcome.why_not.starts_with("rank 3 of 8 has not come within 0.1 s"))
        << outcome.why_not;
  }
  const auto off = Join(keep.get(), late);
  ASSERT_TRUE(off.ok());
  EXPECT_FALSE(off.value().together);
  EXPECT_EQ(off.value().why_not, outcomes[0].why_not);
  // The next communicator with this id is not disturbed.
  auto again = Ranks(8);
  for (const JoinOutcome& outcome : JoinAll(again)) {
    EXPECT_TRUE(outcome.together);
    EXPECT_EQ(outcome.prefix, "c1f.1.");
  }
}

TEST_F(JoinTest, ManyMissingRanksAreCounted) {
  auto request = Request(0, 100);
  request.limit = milliseconds(20);
  const auto store = Open();
  const auto outcome = Join(store.get(), request);
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome.value().why_not.starts_with("ranks 1, 2, 3, 4 and 95 more of 100 have not"))
      << outcome.value().why_not;
}

// A run that died while it was joining has left some slots and no decision.
TEST_F(JoinTest, HalfARegistrationOfAFormerRunIsPassedBy) {
  const auto keep = Open();
  for (const int rank : {0, 2}) {
    ASSERT_TRUE(keep->Propose(Format("j1f.0.{}", rank), "0123456789abcdef ranks=3 build=1").ok());
  }
  for (const JoinOutcome& outcome : JoinAll(Ranks(3))) {
    EXPECT_TRUE(outcome.together) << outcome.why_not;
    EXPECT_EQ(outcome.prefix, "c1f.1.");
  }
  EXPECT_TRUE(keep->Read("j1f.0.mode").value()->starts_with("next:"));
}

// As before, and rank 0 of this run takes the first slot: the existing registrations do not echo
// its nonce.
TEST_F(JoinTest, ARegistrationWithAnotherNonceDoesNotCount) {
  const auto keep = Open();
  const std::string alike = "ranks=3 " + Request(0, 3).alike;
  ASSERT_TRUE(keep->Propose("j1f.0.1", "0123456789abcdef fedcba9876543210 " + alike).ok());
  ASSERT_TRUE(keep->Propose("j2f.0.1", "0123456789abcdef fedcba9876543210 " + alike).ok());
  ASSERT_TRUE(keep->Propose("j2f.0.2", "0123456789abcdef fedcba9876543210 " + alike).ok());
  JoinRequest alone = Request(0, 3);
  alone.comm_id = 0x2f;
  alone.limit = milliseconds(50);
  EXPECT_FALSE(Join(keep.get(), alone).value().together);
  for (const JoinOutcome& outcome : JoinAll(Ranks(3))) {
    EXPECT_TRUE(outcome.together) << outcome.why_not;
    EXPECT_EQ(outcome.prefix, "c1f.1.");
  }
}

// Another process joined with this rank's number: its "go" is not for this rank.
TEST_F(JoinTest, AGoWithAnothersRegistrationIsNotForUs) {
  const auto keep = Open();
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_TRUE(keep->Propose(Format("j1f.0.{}", rank), "0123456789abcdef ranks=2 x").ok());
  }
  ASSERT_TRUE(keep->Propose("j1f.0.mode", "go:theirs").ok());
  for (const JoinOutcome& outcome : JoinAll(Ranks(2))) {
    EXPECT_TRUE(outcome.together);
    EXPECT_EQ(outcome.prefix, "c1f.1.");
    EXPECT_NE(outcome.offer, "theirs");
  }
}

TEST_F(JoinTest, TwoThatClaimOneRankNeverGetTogetherAsOne) {
  auto requests = Ranks(3);
  requests.push_back(Request(1, 3));
  for (JoinRequest& request : requests) request.limit = milliseconds(300);
  const auto keep = Open();
  const auto outcomes = JoinAll(requests);
  // At most one process per rank and generation joins.
  for (size_t a = 0; a < outcomes.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      if (requests[a].rank != requests[b].rank) continue;
      EXPECT_FALSE(outcomes[a].together && outcomes[b].together &&
                   outcomes[a].prefix == outcomes[b].prefix);
    }
  }
}

TEST_F(JoinTest, AnOfferIsKeptOnceHoweverManyCommunicatorsCarryIt) {
  const auto keep = Open();
  std::vector<JoinRequest> requests = Ranks(2);
  requests[0].offer = std::string(200000, 'x');
  double first = 0;
  for (uint64_t id = 1; id <= 20; ++id) {
    for (JoinRequest& request : requests) request.comm_id = id;
    for (const JoinOutcome& outcome : JoinAll(requests)) {
      ASSERT_TRUE(outcome.together) << outcome.why_not;
      EXPECT_EQ(outcome.offer, requests[0].offer);
    }
    if (id == 1) first = keep->Fullness();
  }
  EXPECT_LT(keep->Fullness(), first + 0.01);
}

TEST_F(JoinTest, HundredsOfRanks) {
  const auto keep = Open();
  for (const JoinOutcome& outcome : JoinAll(Ranks(200))) EXPECT_TRUE(outcome.together);
}

}  // namespace
}  // namespace diapason::agree
