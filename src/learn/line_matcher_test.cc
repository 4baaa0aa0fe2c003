#include "learn/line_matcher.h"

#include <gtest/gtest.h>

namespace diapason::learn {
namespace {

RewardLine Line(uint64_t number, uint64_t call = 0, uint64_t calls = 1) {
  RewardLine line;
  line.seconds = static_cast<double>(number);
  line.call = call;
  line.calls = calls;
  return line;
}

// A program that makes n calls and then writes a line, over and over, after `unlogged` calls
// without one; line k has the time k. The file is looked at after every `look`th event of it, and
// the program is then `late` calls ahead of its lines.
struct Program {
  uint64_t n = 1;
  uint64_t unlogged = 0;
  uint64_t late = 0;
  uint64_t look = 1;

  // Checks that every line is booked for its own calls; returns how many were.
  size_t Run(LineMatcher* matcher, uint64_t lines) {
    size_t booked = 0;
    uint64_t event = 0;
    const auto maybe_look = [&](uint64_t calls, uint64_t written) {
      if (++event % look != 0) return;
      for (; read < written; ++read) matcher->Line(Line(read));
      for (const LineMatcher::Credit& credit : matcher->Read(calls)) {
        const auto k = static_cast<uint64_t>(credit.seconds);
        EXPECT_EQ(credit.first, unlogged + k * n);
        EXPECT_EQ(credit.end, unlogged + (k + 1) * n);
        ++booked;
      }
    };
    for (uint64_t k = 0; k < lines; ++k, ++made_lines) {
      const uint64_t before = unlogged + made_lines * n + late;
      for (uint64_t call = 1; call <= n; ++call) maybe_look(before + call, made_lines);
      maybe_look(before + n, made_lines + 1);
    }
    return booked;
  }

  uint64_t made_lines = 0;
  uint64_t read = 0;
};

TEST(LineMatcher, FindsTheCallsOfALine) {
  for (const uint64_t n : {1, 3, 40}) {
    // Every n + 2 events: the lead grows by one a line at first, as if a line had n + 1 calls.
    for (const uint64_t look : {uint64_t{1}, uint64_t{7}, uint64_t{1000}, n + 2}) {
      LineMatcher matcher;
      Program program{n, 0, 0, look};
      EXPECT_GE(program.Run(&matcher, 40000), 20000u) << n << " " << look;
      EXPECT_EQ(matcher.calls_per_line(), n);
      EXPECT_EQ(matcher.Trouble(), std::nullopt);
      EXPECT_EQ(matcher.boundary(), 0u);
    }
  }
}

// A constant lead cannot be told from calls that were not logged.
TEST(LineMatcher, ALeadThatNeverEndsIsNotTrusted) {
  for (const uint64_t n : {1, 2, 10, 40}) {
    for (const uint64_t unlogged : {1, 2, 5, 10, 20, 39, 500}) {
      for (const uint64_t look : {1, 3, 11}) {
        LineMatcher matcher;
        Program program{n, unlogged, 0, look};
        EXPECT_EQ(program.Run(&matcher, 20000), 0u) << n << " " << unlogged << " " << look;
        EXPECT_EQ(matcher.calls_per_line(), 0u) << n << " " << unlogged << " " << look;
      }
    }
  }
  LineMatcher matcher;
  Program program{1, 0, 3, 1};
  EXPECT_EQ(program.Run(&matcher, 20000), 0u) << "it is always three calls ahead";
}

TEST(LineMatcher, SaysHowFarTheLinesAreBehind) {
  LineMatcher matcher;
  Program program{1, 5, 0, 1};
  program.Run(&matcher, 100);
  EXPECT_EQ(matcher.Trouble(), std::nullopt) << "too early";
  program.Run(&matcher, 10000);
  ASSERT_TRUE(matcher.Trouble().has_value());
  EXPECT_NE(matcher.Trouble()->find("at least 5 calls behind"), std::string::npos)
      << *matcher.Trouble();
}

TEST(LineMatcher, BooksNothingAfterCallsWithoutLines) {
  LineMatcher matcher;
  Program program{2, 0, 0, 1};
  EXPECT_GT(program.Run(&matcher, 100), 50u);
  program.unlogged = 4;  // from here on
  EXPECT_EQ(program.Run(&matcher, 10000), 0u);
  EXPECT_TRUE(matcher.lost());
  EXPECT_EQ(matcher.calls_per_line(), 0u);
  EXPECT_NE(matcher.Trouble().value_or("").find("4 calls behind"), std::string::npos)
      << matcher.Trouble().value_or("");
}

TEST(LineMatcher, MoreLinesThanCallsAreNotTrusted) {
  LineMatcher matcher;
  for (uint64_t k = 0; k < 100; ++k) {
    matcher.Line(Line(k));
    EXPECT_TRUE(matcher.Read((k + 1) / 2).empty());
  }
  EXPECT_NE(matcher.Trouble().value_or("").find("more than the calls"), std::string::npos);
  LineMatcher first;
  EXPECT_TRUE(first.Read(1).empty());
  EXPECT_EQ(first.calls_per_line(), 0u);
  LineMatcher().Read(UINT64_MAX);
  first.Line(Line(0));
  EXPECT_TRUE(first.Read(UINT64_MAX).empty());
}

TEST(LineMatcher, TakesTheCallsThatALineNames) {
  LineMatcher matcher;
  std::vector<LineMatcher::Credit> credits;
  for (uint64_t k = 0; k < 10; ++k) {
    matcher.Line(Line(k, 100 + 20 * k, 4));
    matcher.Line(Line(k));  // has none: what it is about is not known
    for (const auto& credit : matcher.Read(5000)) credits.push_back(credit);
  }
  ASSERT_EQ(credits.size(), 7u) << "the first three are not trusted yet";
  EXPECT_EQ(credits[0].first, 156u);
  EXPECT_EQ(credits[0].end, 160u);
  EXPECT_EQ(credits[0].seconds, 3);
  EXPECT_EQ(matcher.calls_per_line(), 4u);
  EXPECT_EQ(matcher.boundary(), 280u);
}

TEST(LineMatcher, NumbersThatCannotBeEndIt) {
  const auto feed = [](LineMatcher* matcher, std::initializer_list<uint64_t> numbers) {
    size_t booked = 0;
    for (const uint64_t number : numbers) {
      matcher->Line(Line(number, number));
      booked += matcher->Read(100).size();
    }
    return booked;
  };
  LineMatcher twice;  // two communicators
  EXPECT_EQ(feed(&twice, {1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9}), 0u);
  EXPECT_NE(twice.Trouble().value_or("").find("do not increase"), std::string::npos);
  LineMatcher beyond;
  EXPECT_EQ(feed(&beyond, {1, 2, 3, 4, 5, 101, 6, 7, 8, 9, 10, 11}), 2u);
  EXPECT_TRUE(beyond.lost());
  EXPECT_NE(beyond.Trouble().value_or("").find("beyond the calls"), std::string::npos);
}

TEST(LineMatcher, NumbersCanComeLater) {
  LineMatcher matcher;
  Program program{1, 5, 0, 1};
  program.Run(&matcher, 10000);
  for (uint64_t k = 0; k < 10; ++k) {
    matcher.Line(Line(k, 20000 + k));
    matcher.Read(20000 + k);
  }
  EXPECT_EQ(matcher.calls_per_line(), 1u);
}

}  // namespace
}  // namespace diapason::learn
