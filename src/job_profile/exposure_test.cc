#include "job_profile/exposure.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace diapason::job_profile {
namespace {

constexpr double kUs = 1e-6;

// Iterations of three collectives of 100 us that vary by 5 %, with 300 us of work from one to the
// next. The work waits for the collectives, or runs beside them.
std::vector<IterationSpans> Make(bool waits, double noise, size_t count = 60) {
  const CounterRandom random(5, 0);
  std::vector<IterationSpans> all;
  uint64_t n = 0;
  for (size_t i = 0; i < count; ++i) {
    IterationSpans one;
    double now = 0;
    for (size_t p = 0; p < 3; ++p) {
      const double length = 100 * kUs * (1 + noise * 0.05 * random.Normal(n++));
      const double work = 300 * kUs * (1 + noise * 0.02 * random.Normal(n++));
      one.spans.push_back({p, 0, now, now + length, now - 1e-3});
      now += waits ? length + work : work;
    }
    one.length = now;
    all.push_back(one);
  }
  return all;
}

TEST(Exposure, WhatTheNextWorkWaitsForIsExposed) {
  for (const PositionTime& one : EstimateExposure(Make(true, 1), 3)) {
    EXPECT_NEAR(one.total, 100 * kUs, 3 * kUs);
    EXPECT_NEAR(one.exposed, one.total, 0.25 * one.total);
    EXPECT_GT(one.low, 0.4 * one.total);
    EXPECT_LE(one.exposed, one.high);
    EXPECT_LE(one.high, one.total * 1.0001);
  }
}

TEST(Exposure, WhatRunsBesideWorkIsHidden) {
  for (const PositionTime& one : EstimateExposure(Make(false, 1), 3)) {
    EXPECT_LT(one.exposed, 0.25 * one.total);
    EXPECT_LT(one.high, 0.6 * one.total);
    EXPECT_LE(one.low, one.exposed);
  }
}

TEST(Exposure, WithoutVariationNothingIsKnown) {
  for (const bool waits : {true, false}) {
    for (const PositionTime& one : EstimateExposure(Make(waits, 0), 3)) {
      EXPECT_EQ(one.low, 0);
      EXPECT_NEAR(one.high, one.total, 1e-12);
    }
  }
}

TEST(Exposure, FewIterationsHaveTheWidestBounds) {
  for (const PositionTime& one : EstimateExposure(Make(true, 1, 4), 3)) {
    EXPECT_GT(one.total, 0);
    EXPECT_EQ(one.low, 0);
    EXPECT_NEAR(one.high, one.total, 1e-12);
  }
  EXPECT_TRUE(EstimateExposure({}, 0).empty());
  EXPECT_EQ(EstimateExposure({}, 2)[1].total, 0);
}

// Five collectives back to back, of which the last is followed by work that waits for it: 500 us,
// which may well be done beside the others.
TEST(Exposure, BackToBackOnlyTheEndIsCertain) {
  const CounterRandom random(6, 0);
  uint64_t n = 0;
  for (const double launched : {-1e-3, 350 * kUs}) {
    std::vector<IterationSpans> all;
    for (int i = 0; i < 60; ++i) {
      IterationSpans one;
      double now = 0;
      for (size_t p = 0; p < 5; ++p) {
        const double length = 100 * kUs * (1 + 0.05 * random.Normal(n++));
        one.spans.push_back({p, 0, now, now + length, launched + static_cast<double>(p) * 1e-8});
        now += length + 1 * kUs;
      }
      one.length = now + 500 * kUs;
      all.push_back(one);
    }
    double exposed = 0;
    double low = 0;
    double high = 0;
    for (const PositionTime& one : EstimateExposure(all, 5)) {
      exposed += one.exposed;
      low += one.low;
      high += one.high;
    }
    EXPECT_NEAR(low, 100 * kUs, 10 * kUs);
    EXPECT_NEAR(high, 500 * kUs, 15 * kUs);
    // The host was far ahead, or launched the first one late and the last one after 350 us, in
    // which the GPU cannot have been busy throughout.
    EXPECT_NEAR(exposed, launched < 0 ? 100 * kUs : 430 * kUs, 20 * kUs);
  }
}

// Five collectives back to back after others with 20 us of work from one to the next.
TEST(Exposure, WorkBesideCollectivesBackToBackIsAsMuchAsElsewhere) {
  const CounterRandom random(9, 0);
  uint64_t n = 0;
  std::vector<IterationSpans> all;
  for (int i = 0; i < 60; ++i) {
    IterationSpans one;
    double now = 0;
    for (size_t p = 0; p < 10; ++p) {
      const double length = 100 * kUs * (1 + 0.05 * random.Normal(n++));
      one.spans.push_back({p, 0, now, now + length, -1e-3 + static_cast<double>(p) * kUs});
      now += length + (p < 5 ? 20 : 2) * kUs;
    }
    one.length = now + 500 * kUs;
    all.push_back(one);
  }
  double exposed = 0;
  double low = 0;
  double high = 0;
  for (const PositionTime& one : EstimateExposure(all, 10)) {
    exposed += one.exposed;
    low += one.low;
    high += one.high;
  }
  EXPECT_NEAR(exposed, 920 * kUs, 20 * kUs);
  EXPECT_LT(low, 620 * kUs);
  EXPECT_NEAR(high, 1000 * kUs, 20 * kUs);
}

// The host launches a call every 150 us at the earliest. Work of 30 us waits for each collective of
// 100 us, and now and then of 200.
std::vector<IterationSpans> BehindHost(double longer) {
  const CounterRandom random(10, 0);
  uint64_t n = 0;
  std::vector<IterationSpans> all;
  for (int i = 0; i < 80; ++i) {
    IterationSpans one;
    double now = 0;
    double launched = -5 * kUs;
    for (size_t p = 0; p < 4; ++p) {
      const bool slow = random.Uniform(n++) < longer;
      const double length = (slow ? 200 : 100) * kUs * (1 + 0.05 * random.Normal(n++));
      one.spans.push_back({p, 0, now, now + length, launched});
      launched += 150 * kUs;
      now = std::max(now + length + 30 * kUs, launched + 5 * kUs);
    }
    // The host waits for the last one.
    one.length = now + 5 * kUs;
    all.push_back(one);
  }
  return all;
}

TEST(Exposure, WhatTheHostIsLateForIsNotHidden) {
  for (const double longer : {0.05, 0.3}) {
    double total = 0;
    double exposed = 0;
    double behind = 0;
    for (const PositionTime& one : EstimateExposure(BehindHost(longer), 4)) {
      total += one.total;
      exposed += one.exposed;
      behind += one.behind_host;
      EXPECT_NEAR(one.high, one.total, 0.05 * one.total);
    }
    EXPECT_NEAR(exposed, total, 0.1 * total) << longer;
    EXPECT_GT(behind, 0.2 * total) << "a faster collective saves nothing there";
  }
}

TEST(Exposure, TheTimeOfAllIsTheMedianOfIterations) {
  std::vector<IterationSpans> all;
  for (size_t i = 0; i < 30; ++i) {
    IterationSpans one;
    // One of three takes long.
    for (size_t p = 0; p < 3; ++p) {
      const double start = static_cast<double>(p) * 500 * kUs;
      one.spans.push_back({p, 0, start, start + (i % 3 == p ? 300 : 100) * kUs, start - 1e-3});
    }
    one.length = 1500 * kUs;
    all.push_back(one);
  }
  double total = 0;
  for (const PositionTime& one : EstimateExposure(all, 3)) total += one.total;
  EXPECT_NEAR(total, 500 * kUs, 1 * kUs);
}

TEST(Exposure, CallsOfOneGroupCountAsOne) {
  const CounterRandom random(8, 0);
  uint64_t n = 0;
  std::vector<IterationSpans> all;
  for (int i = 0; i < 60; ++i) {
    IterationSpans one;
    double now = 0;
    for (size_t p = 0; p < 3; ++p) {
      const double length = 100 * kUs * (1 + 0.05 * random.Normal(n++));
      one.spans.push_back({p, 0, now, now + length, -1e-3});
      now += length + 1 * kUs;
    }
    one.length = now + 500 * kUs;
    all.push_back(one);
  }
  for (const PositionTime& one : EstimateExposure(all, 3)) {
    EXPECT_NEAR(one.exposed, one.total, 0.05 * one.total);
    EXPECT_GT(one.low, 0.8 * one.total);
  }
}

TEST(Exposure, TimesOfOverlappingCollectivesCountOnce) {
  std::vector<IterationSpans> all;
  for (int i = 0; i < 10; ++i) {
    IterationSpans one;
    one.spans = {
        {0, 0, 0, 100 * kUs, 0}, {1, 1, 40 * kUs, 60 * kUs, 0}, {2, 1, 200 * kUs, 210 * kUs, 0}};
    one.length = 300 * kUs;
    all.push_back(one);
  }
  const std::vector<PositionTime> times = EstimateExposure(all, 3);
  EXPECT_NEAR(times[0].total, 80 * kUs, 1e-9);
  EXPECT_NEAR(times[1].total, 20 * kUs, 1e-9);
  EXPECT_NEAR(times[2].total, 10 * kUs, 1e-9);
}

TEST(Exposure, ASlopeIgnoresSingleSlowIterations) {
  const CounterRandom random(7, 0);
  std::vector<double> x;
  std::vector<double> y;
  for (uint64_t i = 0; i < 50; ++i) {
    x.push_back(1 + 0.1 * random.Uniform(i));
    y.push_back(3 + 0.5 * x.back() + (i % 10 == 0 ? 7 : 0));
  }
  const Slope slope = MedianSlope(x, y);
  ASSERT_TRUE(slope.known);
  EXPECT_NEAR(slope.value, 0.5, 0.05);
  EXPECT_LE(slope.low, slope.value);
  EXPECT_GE(slope.high, slope.value);
  EXPECT_FALSE(MedianSlope({1, 1, 1, 1, 1, 1, 1, 1, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}).known);
}

}  // namespace
}  // namespace diapason::job_profile
