#include "agree/epochs.h"

#include <gtest/gtest.h>

#include <map>

#include "base/text.h"

namespace diapason::agree {
namespace {

class MapStore : public CellStore {
 public:
  using CellStore::Forget;
  using CellStore::Propose;
  using CellStore::Read;
  Result<std::string> Propose(std::string_view key, std::string_view value, Deadline) override {
    ++calls;
    if (broken) return IoError("gone");
    return cells.emplace(key, value).first->second;
  }
  Result<std::optional<std::string>> Read(std::string_view key, Deadline) override {
    ++calls;
    if (broken) return IoError("gone");
    const auto found = cells.find(std::string(key));
    if (found == cells.end()) return std::optional<std::string>();
    return std::optional<std::string>(found->second);
  }
  void Forget(std::string_view, Deadline) override {}
  double Fullness() override { return 0; }
  std::string Describe() const override { return "map"; }
  bool Mine() const override { return true; }

  std::map<std::string, std::string> cells;
  int calls = 0;
  bool broken = false;
};

const Config kIncumbent{1, 2, 0, 0};
const Config kOther{0, 1, 8, 0};

EpochLog::Options Options() {
  EpochLog::Options options;
  options.prefix = "c1.0.allreduce.20.";
  options.incumbent = kIncumbent;
  options.opening_calls = 4;
  options.hold_calls = 3;
  return options;
}

Schedule TwoSegments() {
  Schedule schedule;
  schedule.incumbent = kOther;
  schedule.segments = {{kOther, 2, false}, {kIncumbent, 5, true}};
  return schedule;
}

TEST(EpochLog, OpensWithTheIncumbentAndWithoutCells) {
  MapStore store;
  EpochLog log(&store, Options());
  for (uint64_t i = 0; i < 8; ++i) {
    const auto span = log.At(i);
    ASSERT_TRUE(span.ok());
    EXPECT_EQ(span.value().config, kIncumbent);
    EXPECT_EQ(span.value().epoch, i / 4);
    EXPECT_EQ(span.value().first, i / 4 * 4);
    EXPECT_EQ(span.value().end, i / 4 * 4 + 4);
    EXPECT_FALSE(span.value().held);
  }
  EXPECT_EQ(store.calls, 0);
}

TEST(EpochLog, AnEmptyCellBecomesAHoldForEverybody) {
  MapStore store;
  EpochLog log(&store, Options());
  const auto span = log.At(8);
  ASSERT_TRUE(span.ok());
  EXPECT_TRUE(span.value().held);
  EXPECT_EQ(span.value().config, kIncumbent);
  EXPECT_EQ(span.value().end, 11u);
  EXPECT_EQ(store.cells.at("c1.0.allreduce.20.e2"), "hold");
  // Rank 0 comes too late with its proposal.
  const auto late = EpochLog::Propose(&store, Options().prefix, 2, TwoSegments());
  ASSERT_TRUE(late.ok());
  EXPECT_TRUE(late.value().held);
  EXPECT_EQ(late.value().text, "hold");
}

TEST(EpochLog, AProposalInTimeIsWhatEverybodyRuns) {
  MapStore store;
  const auto stands = EpochLog::Propose(&store, Options().prefix, 2, TwoSegments());
  ASSERT_TRUE(stands.ok());
  EXPECT_FALSE(stands.value().held);
  EXPECT_EQ(stands.value().schedule, TwoSegments());
  EpochLog log(&store, Options());
  const auto first = log.At(9);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first.value().config, kOther);
  EXPECT_FALSE(first.value().counts);
  EXPECT_EQ(first.value().segment, 0u);
  EXPECT_EQ(first.value().first, 8u);
  EXPECT_EQ(first.value().end, 10u);
  const auto second = log.At(10);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second.value().config, kIncumbent);
  EXPECT_EQ(second.value().segment, 1u);
  EXPECT_EQ(second.value().end, 15u);
  // The next hold holds the incumbent of the last schedule, not that of the beginning.
  const auto hold = log.At(15);
  ASSERT_TRUE(hold.ok());
  EXPECT_TRUE(hold.value().held);
  EXPECT_EQ(hold.value().config, kOther);
  EXPECT_EQ(log.newest().number, 3u);
  EXPECT_EQ(log.newest().end(), 18u);
}

TEST(EpochLog, HoldsInARowGrowUntilSomethingIsProposed) {
  MapStore store;
  EpochLog log(&store, Options());
  ASSERT_TRUE(log.At(8).ok());
  uint64_t length = 3;
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(log.newest().schedule.Calls(), length) << i;
    if (i < 7) length *= 2;
    ASSERT_TRUE(log.At(log.newest().end()).ok());
  }
  ASSERT_TRUE(
      EpochLog::Propose(&store, Options().prefix, log.newest().number + 1, TwoSegments()).ok());
  ASSERT_TRUE(log.At(log.newest().end()).ok());
  EXPECT_EQ(log.newest().schedule, TwoSegments());
  ASSERT_TRUE(log.At(log.newest().end()).ok());
  EXPECT_EQ(log.newest().schedule.Calls(), 3u);
}

TEST(EpochLog, GoesAheadAndBackUntilForgotten) {
  MapStore store;
  EpochLog log(&store, Options());
  const auto ahead = log.At(40);
  ASSERT_TRUE(ahead.ok());
  const int calls = store.calls;
  for (uint64_t i = 0; i <= 40; ++i) ASSERT_TRUE(log.At(i).ok()) << i;
  EXPECT_EQ(store.calls, calls);
  log.Forget(20);
  EXPECT_TRUE(log.At(20).ok());
  EXPECT_FALSE(log.At(10).ok());
  log.Forget(1000);  // the newest stays
  EXPECT_TRUE(log.At(log.newest().start).ok());
}

TEST(EpochLog, ACallInAKnownEpochDoesNotAccessTheStore) {
  MapStore store;
  EpochLog log(&store, Options());
  ASSERT_TRUE(log.At(8).ok());
  store.broken = true;
  EXPECT_TRUE(log.At(10).ok());
  EXPECT_FALSE(log.At(11).ok());
  store.broken = false;
  EXPECT_TRUE(log.At(11).ok());
}

TEST(EpochLog, WhatNoRankHasWrittenIsAnError) {
  for (const char* garbage : {"", "HOLD", "hold ", "1.2.0", "1.2.0;0.0.0x0", "1.2.0;0.0.0x5;"}) {
    MapStore store;
    store.cells["c1.0.allreduce.20.e2"] = garbage;
    EpochLog log(&store, Options());
    EXPECT_FALSE(log.At(8).ok()) << garbage;
    EXPECT_FALSE(log.At(8).ok()) << garbage;
    EXPECT_FALSE(EpochLog::Propose(&store, Options().prefix, 2, TwoSegments()).ok());
  }
}

TEST(EpochLog, WhatOthersCouldNotReadIsNotProposed) {
  MapStore store;
  EXPECT_FALSE(EpochLog::Propose(&store, "p.", 2, Schedule()).ok());
  EXPECT_FALSE(EpochLog::Propose(&store, "p.", 1, TwoSegments()).ok());
  EXPECT_TRUE(store.cells.empty());
}

TEST(EpochLog, WhatWasReadAheadNeedsNoStore) {
  MapStore store;
  KnownCells known;
  EpochLog::Options options = Options();
  options.known = &known;
  EpochLog log(&store, options);
  known.Put(2, ScheduleText(TwoSegments()));
  known.Put(3, "hold");
  store.broken = true;
  const auto second = log.At(8);
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(second.value().config, kOther);
  const auto third = log.At(15);
  ASSERT_TRUE(third.ok());
  EXPECT_TRUE(third.value().held);
  EXPECT_EQ(store.calls, 0);
  EXPECT_FALSE(log.At(18).ok()) << "the fourth is not known";
  EXPECT_FALSE(known.Has(2)) << "dropped once it is entered";
}

TEST(EpochLog, AnEmptyCellIsNeverKnown) {
  MapStore store;
  KnownCells known;
  EpochLog::Options options = Options();
  options.known = &known;
  EpochLog log(&store, options);
  EXPECT_FALSE(known.Take(2).has_value());
  // Written after the read: the value that stands is used.
  ASSERT_TRUE(EpochLog::Propose(&store, options.prefix, 2, TwoSegments()).ok());
  ASSERT_TRUE(log.At(8).ok());
  EXPECT_EQ(log.newest().schedule, TwoSegments());
}

TEST(EpochLog, VeryLongEpochsEndInAnErrorAndNotInAnOverflow) {
  MapStore store;
  std::string longest = "1.2.0";
  for (size_t i = 0; i < kMostSegments; ++i) {
    longest += Format(";1.2.0x{}", kMostCalls);
  }
  for (int i = 2; i < 300; ++i) store.cells[Format("c1.0.allreduce.20.e{}", i)] = longest;
  EpochLog log(&store, Options());
  EXPECT_TRUE(log.At(uint64_t{1} << 58).ok());
  EXPECT_FALSE(log.At(UINT64_MAX).ok());
}

TEST(EpochLog, AQuestionTooFarAheadIsBounded) {
  MapStore store;
  EpochLog log(&store, Options());
  EXPECT_FALSE(log.At(uint64_t{1} << 60).ok());
}

}  // namespace
}  // namespace diapason::agree
