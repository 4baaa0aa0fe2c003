#include <gtest/gtest.h>

#include "report/page_testing.h"

namespace diapason::report {
namespace {

TEST(PageLimitTest, TheSlowestGoFirstAndANoteSaysSo) {
  Samples samples;
  const size_t run = samples.Run("sweep");
  for (int i = 0; i < 40; ++i) {
    samples.Add(run, At(1024, "ring", "simple", i + 1), 1e-6 * (i + 1), 0);
  }
  samples.Add(run, At(1024), 100e-6, 0);
  PageData data = samples.Make();
  PageLimits limits;
  limits.cells = 10;
  LimitPage(limits, &data);
  const PageSize& size = data.groups[0].sizes[0];
  EXPECT_EQ(size.cells.size(), 10u);
  EXPECT_EQ(size.left_out, 31u);
  EXPECT_NE(size.Find(0), nullptr);
  EXPECT_NEAR(size.cells[8].time.median, 9e-6, 1e-12);
  EXPECT_EQ(data.configs.size(), 10u);
  ASSERT_EQ(data.notes.size(), 1u);
  EXPECT_EQ(data.notes[0].substr(0, 14), "31 of 41 figur");
}

TEST(PageLimitTest, TextsAreCutBetweenCharacters) {
  Samples samples;
  const size_t run = samples.Run("sweep");
  samples.Fail(run, At(1024), SampleOutcome::kCrash, "abc\xc3\xa4\xc3\xa4\xc3\xa4");
  PageData data = samples.Make();
  PageLimits limits;
  limits.text = 6;
  LimitPage(limits, &data);
  EXPECT_EQ(data.failures[0].note, "abc\xc3\xa4...");
}

TEST(PageLimitTest, AnyAmountOfDataFits) {
  Samples samples;
  const size_t run = samples.Run("sweep");
  for (int i = 0; i < 3000; ++i) {
    Point point = At(1024);
    point.ranks = i + 2;
    point.type = std::string(300, 'x');
    point.environment = "NCCL_X=" + std::string(300, 'y') + std::to_string(i);
    samples.Add(run, point, 1e-6, 0);
    samples.Fail(run, point, SampleOutcome::kCrash, std::string(1000, 'z'));
  }
  const PageData data = samples.Make();
  EXPECT_LE(PageHtml(data, "n", 300000).size(), 300000u);
}

}  // namespace
}  // namespace diapason::report
