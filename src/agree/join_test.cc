#include "agree/join.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "agree/stores.h"
#include "agree/testing.h"

namespace diapason::agree {
namespace {

using std::chrono::milliseconds;

class JoinTest : public testing::Test {
 protected:
  std::unique_ptr<Store> Open() {
    StoreOptions options;
    options.job = "join";
    auto store = OpenShmStore(options, {folder_.path(), uint64_t{8} << 20});
    EXPECT_TRUE(store.ok()) << store.status().message();
    return std::move(store).value();
  }
  static JoinRequest Request(int rank, int ranks) {
    JoinRequest request;
    request.comm_id = 0x1f;
    request.rank = rank;
    request.ranks = ranks;
    request.alike = "build=1 library=2.28.9 profiler=5";
    request.offer = Format("offer of %d", rank);
    request.limit = milliseconds(60000);  // not reached where all come
    return request;
  }
  // Each on its own thread, and with its own store.
  std::vector<JoinOutcome> JoinAll(const std::vector<JoinRequest>& requests) {
    std::vector<JoinOutcome> outcomes(requests.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < requests.size(); ++i) {
      threads.emplace_back([&, i] {
        const auto store = Open();
        auto outcome = Join(store.get(), requests[i]);
        if (!outcome.ok()) ADD_FAILURE() << outcome.status().message();
        if (outcome.ok()) outcomes[i] = std::move(outcome).value();
      });
    }
    for (std::thread& thread : threads) thread.join();
    return outcomes;
  }
  std::vector<JoinRequest> Ranks(int ranks) {
    std::vector<JoinRequest> requests;
    for (int rank = 0; rank < ranks; ++rank) requests.push_back(Request(rank, ranks));
    return requests;
  }
  TemporaryFolder folder_;
};

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
      EXPECT_EQ(outcome.prefix, Format("c1f.%d.", generation));
    }
  }
}

TEST_F(JoinTest, ForgettingACommunicatorDoesNotFreeItsGeneration) {
  const auto keep = Open();
  keep->Forget(JoinAll(Ranks(2))[0].prefix);
  EXPECT_EQ(JoinAll(Ranks(2))[0].prefix, "c1f.1.");
}

TEST_F(JoinTest, ADifferenceIsNamedAndTurnsEverybodyOff) {
  const auto keep = Open();  // whoever comes after the decision must find it
  auto requests = Ranks(4);
  requests[2].alike = "build=1 library=2.30.7 profiler=5";
  for (const JoinOutcome& outcome : JoinAll(requests)) {
    EXPECT_FALSE(outcome.together);
    EXPECT_EQ(outcome.offer, "");
    EXPECT_EQ(outcome.why_not, "rank 0 has library=2.28.9, rank 2 has library=2.30.7");
  }
}

TEST_F(JoinTest, AnotherNumberOfRanksIsADifference) {
  const auto keep = Open();  // whoever comes after the decision must find it
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
  for (JoinRequest& request : requests) request.limit = milliseconds(100);
  const JoinRequest late = requests[3];
  requests.erase(requests.begin() + 3);
  const auto outcomes = JoinAll(requests);
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
    ASSERT_TRUE(keep->Propose(Format("j1f.0.%d", rank), "0123456789abcdef ranks=3 build=1").ok());
  }
  for (const JoinOutcome& outcome : JoinAll(Ranks(3))) {
    EXPECT_TRUE(outcome.together) << outcome.why_not;
    EXPECT_EQ(outcome.prefix, "c1f.1.");
  }
  EXPECT_TRUE(keep->Read("j1f.0.mode").value()->starts_with("next:"));
}

// As before, and rank 0 of this run takes the first slot: what is there already is no answer to it.
TEST_F(JoinTest, ARegistrationThatAnswersNobodyOfUsDoesNotCount) {
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

// Somebody else was together in our place: his "go" is never ours.
TEST_F(JoinTest, AGoWithAnothersRegistrationIsNotForUs) {
  const auto keep = Open();
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_TRUE(keep->Propose(Format("j1f.0.%d", rank), "0123456789abcdef ranks=2 x").ok());
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
  // Whoever is together is so once per rank and generation.
  for (size_t a = 0; a < outcomes.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      if (requests[a].rank != requests[b].rank) continue;
      EXPECT_FALSE(outcomes[a].together && outcomes[b].together &&
                   outcomes[a].prefix == outcomes[b].prefix);
    }
  }
}

TEST_F(JoinTest, WhatNobodyHasWrittenIsAnError) {
  for (const char* garbage : {"", "go", "gone:", "learn:x"}) {
    const auto store = Open();
    ASSERT_TRUE(store->Propose("j1f.0.mode", garbage).ok());
    EXPECT_FALSE(Join(store.get(), Request(0, 2)).ok()) << garbage;
  }
  // All are said to be there, and our slot is free.
  const auto store = Open();
  ASSERT_TRUE(store->Propose("j1f.0.mode", "go:x").ok());
  EXPECT_FALSE(Join(store.get(), Request(0, 2)).ok());
}

TEST_F(JoinTest, RanksOutOfRangeAreRefused) {
  const auto store = Open();
  EXPECT_FALSE(Join(store.get(), Request(2, 2)).ok());
  EXPECT_FALSE(Join(store.get(), Request(-1, 2)).ok());
  EXPECT_FALSE(Join(store.get(), Request(0, 0)).ok());
}

TEST_F(JoinTest, HundredsOfRanks) {
  const auto keep = Open();
  for (const JoinOutcome& outcome : JoinAll(Ranks(200))) EXPECT_TRUE(outcome.together);
}

}  // namespace
}  // namespace diapason::agree
