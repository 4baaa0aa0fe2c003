#include "agree/join.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "agree/stores.h"
#include "agree/testing.h"
#include "base/encoding.h"

namespace diapason::agree {
namespace {

using std::chrono::milliseconds;

// Not reached where all ranks come. `./dev mutants`, which breaks joining, sets a shorter one.
milliseconds EnoughTime() {
  const char* const text = std::getenv("DIAPASON_TEST_ENOUGH_MS");
  return milliseconds(text != nullptr ? std::atoi(text) : 120000);
}

class JoinTest : public testing::Test {
 protected:
  std::unique_ptr<CellStore> Open() {
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
    request.limit = EnoughTime();
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
      EXPECT_EQ(outcome.prefix, Format("c1f.%d.", generation));
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
      EXPECT_EQ(outcome.prefix, Format("c1f.%d.", generation));
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
      while (!keep->Read(Format("j1f.0.%d", request.rank)).value().has_value()) {
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
    ASSERT_TRUE(keep->Propose(Format("j1f.0.%d", rank), "0123456789abcdef ranks=3 build=1").ok());
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
  // At most one process per rank and generation joins.
  for (size_t a = 0; a < outcomes.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      if (requests[a].rank != requests[b].rank) continue;
      EXPECT_FALSE(outcomes[a].together && outcomes[b].together &&
                   outcomes[a].prefix == outcomes[b].prefix);
    }
  }
}

TEST_F(JoinTest, ARankThatHasNotRegisteredStaysOffWhereTheStoreMakesNoSense) {
  for (const char* garbage : {"", "go", "gone:", "learn:x"}) {
    const auto store = Open();
    ASSERT_TRUE(store->Propose("j1f.0.mode", garbage).ok());
    JoinProgress progress;
    const auto outcome = Join(store.get(), Request(0, 2), &progress);
    ASSERT_TRUE(outcome.ok()) << garbage;
    EXPECT_FALSE(outcome.value().together);
    EXPECT_FALSE(progress.committed);
  }
}

// Forwards to a real store; from a given call on it is unreachable or full.
class FailsFrom : public CellStore {
 public:
  FailsFrom(CellStore* store, int call, Status failure)
      : store_(store), left_(call), failure_(std::move(failure)) {}
  using CellStore::Forget;
  using CellStore::Propose;
  using CellStore::Read;
  Result<std::string> Propose(std::string_view key, std::string_view value, Deadline d) override {
    if (left_-- <= 0) return failure_;
    return store_->Propose(key, value, d);
  }
  Result<std::optional<std::string>> Read(std::string_view key, Deadline d) override {
    if (left_-- <= 0) return failure_;
    return store_->Read(key, d);
  }
  void Forget(std::string_view, Deadline) override {}
  double Fullness() override { return fullness; }
  std::string Describe() const override { return "failing"; }
  bool Mine() const override { return true; }
  double fullness = 0;

 private:
  CellStore* store_;
  int left_;
  Status failure_;
};

TEST_F(JoinTest, ARankWhoseStoreFailsStaysOffOnlyWhereTheOthersCannotGoAhead) {
  for (const Status& failure : {IoError("away"), Unavailable("emptied"), Unavailable("full")}) {
    for (int call = 0; call < 12; ++call) {
      for (const int failing : {0, 1}) {
        const auto keep = Open();
        std::vector<Result<JoinOutcome>> outcomes(2, Internal("not run"));
        JoinProgress progress[2];
        std::vector<std::thread> threads;
        for (int rank = 0; rank < 2; ++rank) {
          threads.emplace_back([&, rank] {
            FailsFrom store(keep.get(), rank == failing ? call : 1 << 30, failure);
            JoinRequest request = Request(rank, 2);
            request.comm_id = static_cast<uint64_t>(call * 2 + failing + 1);
            request.limit = milliseconds(100);
            outcomes[rank] = Join(&store, request, &progress[rank]);
          });
        }
        for (std::thread& thread : threads) thread.join();
        const Result<JoinOutcome>& other = outcomes[1 - failing];
        ASSERT_TRUE(other.ok());
        if (!other.value().together) continue;
        const Result<JoinOutcome>& mine = outcomes[failing];
        EXPECT_TRUE(!mine.ok() || mine.value().together) << "call " << call;
        EXPECT_TRUE(progress[failing].committed);
      }
    }
  }
}

TEST_F(JoinTest, OnceRegisteredEveryFailureIsAnError) {
  // Two texts, the mode, then the registration, which may be heard though it fails.
  constexpr int kRegisters = 3;
  for (int call = 0; call < 6; ++call) {
    const auto keep = Open();
    FailsFrom store(keep.get(), call, IoError("away"));
    JoinProgress progress;
    const auto outcome = Join(&store, Request(0, 1), &progress);
    EXPECT_EQ(outcome.ok(), call < kRegisters) << call;
    EXPECT_EQ(progress.committed, call >= kRegisters) << call;
    EXPECT_FALSE(outcome.ok() && outcome.value().together) << call;
  }
  // A registration that found no space does not stand, and binds no rank.
  const auto keep = Open();
  FailsFrom store(keep.get(), kRegisters, Status::Error(ErrorCode::kNoRoom, "full"));
  JoinProgress progress;
  const auto outcome = Join(&store, Request(0, 1), &progress);
  ASSERT_TRUE(outcome.ok());
  EXPECT_FALSE(outcome.value().together);
  EXPECT_FALSE(progress.committed);
}

TEST_F(JoinTest, AFullStoreIsLeftAlone) {
  const auto keep = Open();
  FailsFrom store(keep.get(), 1 << 30, {});
  store.fullness = 0.95;
  JoinProgress progress;
  const auto outcome = Join(&store, Request(0, 1), &progress);
  ASSERT_TRUE(outcome.ok());
  EXPECT_FALSE(outcome.value().together);
  EXPECT_NE(outcome.value().why_not.find("full"), std::string::npos);
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

TEST_F(JoinTest, ADamagedOfferIsAnError) {
  const auto store = Open();
  JoinRequest request = Request(0, 1);
  request.offer = "an offer of no rank";
  ASSERT_TRUE(Join(store.get(), request).ok());
  const std::string go = store->Read("j1f.0.mode").value().value();
  ASSERT_EQ(go.substr(0, 3), "go:");
  // The next communicator carries an offer whose cell holds something else.
  request.comm_id = 0x20;
  request.offer = "mine";
  const std::string digest = Format("%016llx.4", static_cast<unsigned long long>(Fnv1a64("mine")));
  ASSERT_TRUE(store->Propose("p" + digest, "another").ok());
  JoinProgress progress;
  EXPECT_FALSE(Join(store.get(), request, &progress).ok());
  EXPECT_TRUE(progress.committed);
}

TEST_F(JoinTest, ARankThatIsSaidToBeThereAndIsNotIsAnError) {
  const auto store = Open();
  ASSERT_TRUE(store->Propose("j1f.0.mode", "go:x").ok());
  JoinProgress progress;
  EXPECT_FALSE(Join(store.get(), Request(0, 2), &progress).ok());
  EXPECT_TRUE(progress.committed);
}

TEST_F(JoinTest, RanksOutOfRangeAreRefused) {
  const auto store = Open();
  EXPECT_FALSE(Join(store.get(), Request(2, 2)).ok());
  EXPECT_FALSE(Join(store.get(), Request(-2, 2)).ok());
  EXPECT_FALSE(Join(store.get(), Request(0, 0)).ok());
}

TEST_F(JoinTest, HundredsOfRanks) {
  const auto keep = Open();
  for (const JoinOutcome& outcome : JoinAll(Ranks(200))) EXPECT_TRUE(outcome.together);
}

}  // namespace
}  // namespace diapason::agree
