#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "agree/join.h"
#include "agree/join_testing.h"
#include "agree/stores.h"
#include "agree/testing.h"
#include "base/encoding.h"

namespace diapason::agree {
namespace {

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
  const std::string digest = Format("{:016x}.4", Fnv1a64("mine"));
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

}  // namespace
}  // namespace diapason::agree
