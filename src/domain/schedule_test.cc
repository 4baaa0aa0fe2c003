#include "domain/schedule.h"

#include <gtest/gtest.h>

namespace diapason {
namespace {

TEST(SizeBandTest, EverySizeLiesInsideItsBandAndBandsMeet) {
  for (int band = 0; band < kSizeBands; ++band) {
    EXPECT_EQ(SizeBand(BandFirst(band)), band);
    EXPECT_EQ(SizeBand(BandLast(band)), band);
    if (band > 0) {
      EXPECT_EQ(BandFirst(band), BandLast(band - 1) + 1);
    }
  }
  EXPECT_EQ(SizeBand(1u << 20), 20);
  EXPECT_EQ(SizeBand((1u << 20) + 1), 21);
}

TEST(ScheduleTest, TravelsUnchanged) {
  Schedule schedule;
  schedule.incumbent = {1, 2, 0};
  schedule.timed = true;
  schedule.segments = {
      {{}, 4, true}, {{}, 4, true, true}, {{0, 2, 4}, 1, false}, {{1, 0, 0}, kMostCalls, true}};
  const Result<Schedule> back = ParseSchedule(ScheduleText(schedule));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value(), schedule);
  EXPECT_EQ(back.value().Calls(), 9 + kMostCalls);
  EXPECT_TRUE(back.value().Explores());
}

TEST(ScheduleTest, ASingleConfigurationDoesNotExplore) {
  EXPECT_FALSE((Schedule{{}, false, {{{1, 2, 0}, 8, true}, {{1, 2, 0}, 8, false}}}).Explores());
  EXPECT_TRUE((Schedule{{}, false, {{{}, 8, true, true}}}).Explores()) << "the policy decides";
}

TEST(ScheduleTest, RefusesWhatItDidNotWrite) {
  std::string many = "0.2.0";
  for (size_t i = 0; i <= kMostSegments; ++i) many += ";0.2.0x1";
  for (const std::string& text :
       {std::string(), std::string("hold"), std::string("0.2.0"), std::string("0.2.0;0.2.0x0"),
        std::string("0.2.0;0.2.0x-1"), std::string("0.2.0;0.2.0x1 "), std::string("0.2.0;99.2.0x1"),
        std::string("0.2.0;0.2.999x1"), std::string("0.2.0;0.2.0x1!!"), std::string("0.2.0;p"),
        std::string("0.2.0;p0.2.0x1"), std::string("p;px1"),
        std::string("0.2.0;0.2.0x999999999999999999"), many}) {
    EXPECT_FALSE(ParseSchedule(text).ok()) << text;
  }
}

}  // namespace
}  // namespace diapason
