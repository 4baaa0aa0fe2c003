#include "plugin/learning/reporter.h"

#include <gtest/gtest.h>

#include <map>

namespace diapason::plugin {
namespace {

class MapStore : public agree::CellStore {
 public:
  using agree::CellStore::Forget;
  using agree::CellStore::Propose;
  using agree::CellStore::Read;
  Result<std::string> Propose(std::string_view key, std::string_view value, Deadline) override {
    return cells.emplace(key, value).first->second;
  }
  Result<std::optional<std::string>> Read(std::string_view key, Deadline) override {
    const auto found = cells.find(std::string(key));
    return found == cells.end() ? std::nullopt : std::optional<std::string>(found->second);
  }
  void Forget(std::string_view, Deadline) override {}
  double Fullness() override { return 0; }
  std::string Describe() const override { return "a map"; }
  bool Mine() const override { return true; }
  std::map<std::string, std::string> cells;
};

agree::EpochLog::Epoch Epoch(uint32_t number, uint64_t start, bool timed) {
  agree::EpochLog::Epoch epoch;
  epoch.number = number;
  epoch.start = start;
  epoch.schedule.timed = timed;
  epoch.schedule.segments = {{{}, 2, true}, {{kTree, kLl, 0}, 2, true}};
  return epoch;
}

TEST(ReporterTest, AnEpochIsOverWhenItsLastCallIsTold) {
  MapStore store;
  Reporter reporter(&store, "p.", 1);
  reporter.Entered(Epoch(2, 100, true), 1.0);
  for (uint64_t call = 100; call < 104; ++call) {
    reporter.Credit(call, call + 1, call < 102 ? 2e-3 : 1e-3);
  }
  EXPECT_TRUE(reporter.TakeFinished(1.1, 1.0).empty()) << "it is still the newest";
  reporter.Entered(Epoch(3, 104, true), 1.2);
  const auto finished = reporter.TakeFinished(1.2, 1.0);
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].epoch, 2u);
  ASSERT_EQ(finished[0].results.size(), 2u);
  EXPECT_DOUBLE_EQ(finished[0].results[0].seconds, 2e-3);
  EXPECT_DOUBLE_EQ(finished[0].results[1].seconds, 1e-3);
  reporter.Post(finished[0]);
  const auto parsed = learn::ParseResults(store.cells.at(Reporter::ResultsKey("p.", 2, 1)), 2);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.value()[1].samples, 2u);
}

TEST(ReporterTest, AMissingTimeIsWaitedForOnlySoLong) {
  MapStore store;
  Reporter reporter(&store, "p.", 1);
  reporter.Entered(Epoch(2, 0, true), 1.0);
  reporter.Credit(0, 1, 1e-3);
  reporter.Entered(Epoch(3, 4, true), 2.0);
  EXPECT_TRUE(reporter.TakeFinished(2.5, 1.0).empty());
  const auto finished = reporter.TakeFinished(3.1, 1.0);
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].results[1].samples, 0u);
}

TEST(ReporterTest, OnlyWhatAllRanksMeasureIsPosted) {
  MapStore store;
  Reporter reporter(&store, "p.", 1);
  reporter.Post({2, false, std::vector<learn::SegmentResult>(2)});
  EXPECT_TRUE(store.cells.empty());
  Reporter explorer(&store, "p.", 0);
  explorer.Post({2, true, std::vector<learn::SegmentResult>(2)});
  EXPECT_TRUE(store.cells.empty());
}

TEST(ReporterTest, AtMostSixtyFourRanksReportAndRankZeroIsOneOfThem) {
  for (const int64_t ranks : {2, 64, 65, 128, 1000, 16384}) {
    int64_t reporting = 0;
    for (int rank = 0; rank < ranks; ++rank) reporting += Reports(rank, ranks) ? 1 : 0;
    EXPECT_LE(reporting, 64) << ranks;
    EXPECT_GE(reporting, std::min<int64_t>(ranks, 32)) << ranks;
    EXPECT_TRUE(Reports(0, ranks));
  }
}

}  // namespace
}  // namespace diapason::plugin
