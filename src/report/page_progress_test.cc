#include <gtest/gtest.h>

#include <algorithm>

#include "report/page_parts.h"
#include "report/page_testing.h"

namespace diapason::report {
namespace {

void AddAt(Samples* samples, size_t run, const Point& point, double seconds, double at) {
  samples->Add(run, point, seconds, static_cast<int>(samples->input.contents.records.size()));
  samples->input.contents.records.back().sample.at = at;
}

TEST(PageProgressTest, TellsWhenTheBestWasFound) {
  Samples samples;
  const size_t run = samples.Run("tune");
  AddAt(&samples, run, At(1024), 20e-6, 100);
  AddAt(&samples, run, At(1024, "ring", "ll"), 16e-6, 103);
  AddAt(&samples, run, At(1024, "tree", "ll"), 10e-6, 105);
  AddAt(&samples, run, At(1024, "ring", "simple"), 30e-6, 109);
  const PageData data = MakePageData(std::move(samples.input));
  ASSERT_EQ(data.groups.size(), 1U);
  const std::vector<PageProgress>& steps = data.groups[0].progress;
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_DOUBLE_EQ(steps[0].gain, 1);
  EXPECT_DOUBLE_EQ(steps[1].gain, 1.25);
  EXPECT_DOUBLE_EQ(steps[1].seconds, 3);
  EXPECT_DOUBLE_EQ(steps[2].gain, 2);
  EXPECT_DOUBLE_EQ(steps[2].seconds, 5);
  EXPECT_EQ(steps[2].samples, 3U);
  // The end of the search.
  EXPECT_DOUBLE_EQ(steps[3].seconds, 9);
  EXPECT_EQ(steps[3].samples, 4U);
}

TEST(PageProgressTest, HasNoneWithoutTimesOrWithoutAGain) {
  Samples untimed;
  const size_t run = untimed.Run("import");
  untimed.Many(run, At(1024), 20e-6);
  untimed.Many(run, At(1024, "tree", "ll"), 10e-6);
  EXPECT_TRUE(MakePageData(std::move(untimed.input)).groups[0].progress.empty());
}

TEST(PageProgressTest, SpreadsOfTheDefaultAndTheBestOnly) {
  Samples samples;
  const size_t run = samples.Run("sweep");
  samples.Many(run, At(1024), 20e-6);
  samples.Many(run, At(1024, "tree", "ll"), 10e-6);
  samples.Many(run, At(1024, "ring", "ll"), 15e-6);
  PageData data = MakePageData(std::move(samples.input));
  const std::vector<PageSpread>& spreads = data.groups[0].sizes[0].spreads;
  ASSERT_EQ(spreads.size(), 2U);
  for (const PageSpread& spread : spreads) {
    ASSERT_EQ(spread.quantiles.size(), std::size(kSpreadLevels));
    EXPECT_TRUE(std::is_sorted(spread.quantiles.begin(), spread.quantiles.end()));
    EXPECT_EQ(spread.samples, 12U);
  }
  PageLimits limits;
  limits.spreads = 1;
  LimitPage(limits, &data);
  EXPECT_TRUE(data.groups[0].sizes[0].spreads.empty());
  EXPECT_NE(data.notes.back().find("distributions"), std::string::npos);
}

TEST(PageProgressTest, UseNamesTheLineForEachLibrary) {
  PageInput::NamedPolicy named{"p q.conf", {}, "/tmp/p q.conf"};
  EXPECT_TRUE(UseOf({}, false).policy.empty());
  EXPECT_NE(UseOf({named}, false).remark.find("no rows"), std::string::npos);
  named.policy.rules.emplace_back();
  named.policy.library = Library::kNccl;
  EXPECT_EQ(UseOf({named}, false).lines.front(),
            "diapason run --policy '/tmp/p q.conf' -- COMMAND");
  EXPECT_TRUE(UseOf({named}, true).lines.empty());
  named.policy.library = Library::kOpenMpi;
  EXPECT_NE(UseOf({named}, false).lines.front().find("mpirun"), std::string::npos);
}

TEST(PageProgressTest, TheTitleHasHostAndDay) {
  Samples samples;
  const size_t run = samples.Run("sweep");
  samples.input.contents.runs[run].machine.hosts = "n2,n1";
  samples.Many(run, At(1024), 20e-6);
  samples.input.now = 1.7e9;
  const std::string title = MakePageData(std::move(samples.input)).title;
  EXPECT_TRUE(title.starts_with("NCCL: allreduce, n1 and 1 more, ")) << title;
}

TEST(PageProgressTest, TheSentenceOfTheCommandIsTheLead) {
  Samples samples;
  const size_t run = samples.Run("sweep");
  samples.Many(run, At(1024), 20e-6);
  samples.input.headline = "3 of 4 sizes faster";
  const std::string lead = LeadText(MakePageData(std::move(samples.input)));
  EXPECT_NE(lead.find(". 3 of 4 sizes faster."), std::string::npos) << lead;
}

}  // namespace
}  // namespace diapason::report
