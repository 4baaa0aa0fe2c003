#include "job_tune/metric.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace diapason::job_tune {
namespace {

using Values = std::vector<std::optional<double>>;
using Verdict = MetricJudgement::Verdict;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

MetricReader Reader(const std::string& pattern) {
  return MetricReader::Make({pattern, 1e-3}).value();
}

std::optional<double> LastOf(const std::string& pattern, const std::string& text) {
  MetricReader reader = Reader(pattern);
  reader.Add(text);
  reader.Finish();
  return reader.last();
}

std::string Refusal(const std::string& pattern) {
  const Result<MetricReader> made = MetricReader::Make({pattern, 1e-3});
  return made.ok() ? "" : made.status().message();
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(MetricReaderTest, PatternsThatCannotBeUsed) {
  EXPECT_TRUE(Contains(Refusal("loss=[0-9]+"), "0 groups"));
  EXPECT_TRUE(Contains(Refusal("(loss)=([0-9]+)"), "2 groups"));
  EXPECT_TRUE(Contains(Refusal("loss=([0-9]+"), "no regular expression"));
  // What is put around the pattern does not make it whole.
  EXPECT_TRUE(Contains(Refusal("a)(b"), "no regular expression"));
  EXPECT_TRUE(Contains(Refusal("([0-9])=\\1"), "refers to a group"));
  EXPECT_TRUE(Contains(Refusal("((?:a?){60}){60}"), "too large"));
  EXPECT_TRUE(Contains(Refusal("(a{99999999999999999999})"), "too large"));
  EXPECT_TRUE(Contains(Refusal(std::string(501, 'a') + "(b)"), "too large"));
  EXPECT_EQ(Refusal("(?:loss|nll)[ =:]{1,3}([0-9.e+-]+)"), "");
}

TEST(MetricReaderTest, NumbersOfAllKinds) {
  const std::string pattern = "loss=(\\S+)";
  EXPECT_EQ(LastOf(pattern, "loss=12\n"), 12);
  EXPECT_EQ(LastOf(pattern, "loss=-1.5e-3\n"), -1.5e-3);
  EXPECT_EQ(LastOf(pattern, "loss=+2.5E+2\n"), 250);
  EXPECT_EQ(LastOf(pattern, "loss=.5,lr=1\n"), 0.5);
  EXPECT_EQ(LastOf(pattern, "loss=1e999\n"), kInfinity);
  EXPECT_EQ(LastOf(pattern, "loss=1e-999\n"), 0);
  EXPECT_EQ(LastOf(pattern, "loss=-inf\n"), -kInfinity);
  EXPECT_TRUE(std::isnan(LastOf(pattern, "loss=nan\n").value()));
  EXPECT_TRUE(std::isnan(LastOf(pattern, "loss=NaN,\n").value()));
  for (const char* none : {"loss=infer\n", "loss=nano\n", "loss=-\n", "loss=x\n", "los=1\n", ""}) {
    EXPECT_FALSE(LastOf(pattern, none).has_value()) << none;
  }
  EXPECT_EQ(LastOf("loss=(.*)", "loss= 2.31 lr 0.1\n"), 2.31);
}

TEST(MetricReaderTest, TheFirstOfTheLastLineCounts) {
  EXPECT_EQ(LastOf("loss=([0-9.]+)", "loss=1\nloss=30 loss=25\nloss=x\nother\n"), 30);
  EXPECT_EQ(LastOf("^loss=([0-9.]+)$", "loss=3\nval loss=4\nloss=5 \n"), 3);
  EXPECT_EQ(LastOf("loss=([0-9]+)|nll=(?:[0-9]+)", "loss=7\n"), 7);
  EXPECT_EQ(LastOf("([0-9]+) %", "10 %\r20 %\r30 %"), 30);
}

// Whatever the pieces are, the value is that of the whole text.
TEST(MetricReaderTest, PieceByPiece) {
  const std::string text = "start\nloss=1.25\r\nloss=2.5\nend of loss=3";
  for (size_t length = 1; length <= text.size(); ++length) {
    MetricReader reader = Reader("loss=([0-9.]+)");
    for (size_t at = 0; at < text.size(); at += length) reader.Add(text.substr(at, length));
    // The last line is not complete.
    EXPECT_EQ(reader.last(), 2.5) << length;
    EXPECT_EQ(reader.count(), 2u) << length;
    reader.Finish();
    EXPECT_EQ(reader.last(), 3) << length;
    EXPECT_EQ(reader.count(), 3u) << length;
  }
}

TEST(MetricReaderTest, WhatIsLeftOutMakesNoValue) {
  MetricReader reader = Reader("loss=([0-9.]+)");
  reader.Add("loss=1\nloss=2");
  reader.Skip();
  reader.Add("5\nmore loss=7 of a line\n");
  EXPECT_EQ(reader.last(), 7);
  reader.Skip();
  reader.Add("loss=99\n");
  EXPECT_EQ(reader.last(), 7);
}

TEST(MetricReaderTest, LongLinesAreNotSearched) {
  MetricReader reader = Reader("loss=([0-9.]+)");
  const std::string piece(1000, 'x');
  for (int i = 0; i < 70000; ++i) reader.Add(piece);
  reader.Add("loss=1\nloss=2\n");
  EXPECT_EQ(reader.last(), 2);
  EXPECT_EQ(reader.count(), 1u);
  for (int i = 0; i < 100; ++i) reader.Add(piece);
  reader.Add("loss=3");
  reader.Finish();
  EXPECT_EQ(reader.last(), 2);
}

// Backtracking would take for ever with these, or use all of the stack.
TEST(MetricReaderTest, HostileText) {
  const std::string many(64 * 1024 - 16, 'a');
  for (const char* pattern : {"(?:a+)+b=([0-9]+)", "(?:a|a)*b=([0-9]+)", "(?:a*)*(?:a*)*b=([0-9]+)",
                              "(?:.*){9}b=([0-9]+)", "((?:a|b|=|[0-9])*)"}) {
    MetricReader reader = Reader(pattern);
    reader.Add(many + "\n" + many + "b=" + "\n");
    reader.Add("aab=5\n");
    reader.Add(std::string("\0\xff\x80\n", 4));
    reader.Finish();
    if (std::string_view(pattern).ends_with("b=([0-9]+)")) {
      EXPECT_EQ(reader.last(), 5) << pattern;
    }
  }
}

// The largest patterns that are accepted, in texts through which every state is visited.
TEST(MetricReaderTest, LargePatterns) {
  std::string optional = "(x)(?:";
  for (int i = 0; i < 120; ++i) optional += "a?";
  for (const std::string& pattern : {optional + "){15}b", optional + "){1,15}b",
                                     "(?:" + optional + "){4})*b", std::string("([0-9]{300})")}) {
    MetricReader reader = Reader(pattern);
    const std::string many(2000, 'a');
    reader.Add("x" + many + "\n1" + many + "\n");
    reader.Finish();
    EXPECT_FALSE(reader.last().has_value());
  }
}

// A line that is not searched because a part of the pattern is missing could not have matched.
TEST(MetricReaderTest, NoMatchIsMissedByTheQuickTest) {
  EXPECT_TRUE(Reader("loss=([0-9]+)").quick());
  EXPECT_FALSE(Reader("loss=([0-9]+)|[0-9] steps").quick());
  EXPECT_FALSE(Reader("([0-9]+)").quick());
  EXPECT_EQ(LastOf("los?s=([0-9]+)", "los=4\n"), 4);
  EXPECT_EQ(LastOf("los{0,2}=([0-9]+)", "lo=4\n"), 4);
  EXPECT_EQ(LastOf("lo+s*=([0-9]+)", "looo=4\n"), 4);
  EXPECT_EQ(LastOf("a\\[[xyz\\]]\\]:([0-9]+)", "a[]]:4\n"), 4);
  EXPECT_EQ(LastOf("(?:loss|nll) \\(mean\\) ([0-9]+)", "nll (mean) 4\n"), 4);
  EXPECT_EQ(LastOf("\\bx\\d ([0-9]+)", "x9 4\n"), 4);
  EXPECT_EQ(LastOf("a|b([0-9]+)", "b4\n"), 4);
}

MetricJudgement Judge(const Values& by_default, const Values& tuned, double tolerance = 1e-3) {
  return JudgeMetric({"x(.)", tolerance}, by_default, tuned);
}

TEST(JudgeMetricTest, ToleranceAndSpread) {
  EXPECT_EQ(JudgeMetric({"", 1e-3}, {1.0}, {2.0}).verdict, Verdict::kNotAsked);
  EXPECT_EQ(Judge({2.0}, {2.001, 1.999}).verdict, Verdict::kUnchanged);
  const MetricJudgement changed = Judge({2.0}, {2.0, 2.1, 1.99});
  EXPECT_EQ(changed.verdict, Verdict::kChanged);
  EXPECT_NEAR(changed.change, 0.05, 1e-12);
  EXPECT_EQ(changed.tuned, 2.1);
  EXPECT_TRUE(Contains(changed.Text(), "a change of 5 % where 0.1 % is allowed")) << changed.Text();
  // Launches of the default are as far apart.
  const MetricJudgement wide = Judge({2.0, 2.1, 1.95}, {2.1, std::nullopt});
  EXPECT_EQ(wide.verdict, Verdict::kUnchanged);
  EXPECT_NEAR(wide.allowed, 0.075, 1e-12);
  EXPECT_TRUE(Contains(wide.Text(), "the spread of launches"));
  EXPECT_EQ(Judge({2.0, 2.1, 1.95}, {2.2}).verdict, Verdict::kChanged);
  EXPECT_EQ(Judge({-2.0}, {-2.001}).verdict, Verdict::kUnchanged);
  EXPECT_EQ(Judge({-2.0}, {2.0}).verdict, Verdict::kChanged);
}

TEST(JudgeMetricTest, ZeroAndWhatIsNoNumber) {
  EXPECT_EQ(Judge({0.0}, {0.0}).verdict, Verdict::kUnchanged);
  EXPECT_EQ(Judge({0.0}, {1e-9}).verdict, Verdict::kChanged);
  EXPECT_EQ(Judge({1.0}, {kNan}).verdict, Verdict::kChanged);
  EXPECT_EQ(Judge({1.0}, {1.0, kInfinity}).verdict, Verdict::kChanged);
  EXPECT_EQ(Judge({kNan}, {1.0}).verdict, Verdict::kChanged);
  EXPECT_EQ(Judge({kNan, kNan}, {kNan}).verdict, Verdict::kUnchanged);
  EXPECT_EQ(Judge({kInfinity}, {kInfinity}).verdict, Verdict::kUnchanged);
  EXPECT_EQ(Judge({kInfinity}, {-kInfinity}).verdict, Verdict::kChanged);
  EXPECT_EQ(Judge({1.0, kNan, 1.0}, {1.0}).verdict, Verdict::kUnchanged);
  // One launch of the default that went wrong does not excuse any change.
  EXPECT_EQ(Judge({1.0, kInfinity}, {2.0}).verdict, Verdict::kChanged);
  EXPECT_TRUE(Contains(Judge({1.0}, {kNan}).Text(), "nan tuned"));
}

TEST(JudgeMetricTest, ValuesAreMissing) {
  const MetricJudgement silent = Judge({std::nullopt}, {1.0});
  EXPECT_EQ(silent.verdict, Verdict::kNotPrinted);
  EXPECT_TRUE(Contains(silent.Text(), "not printed in 1 launch with the default")) << silent.Text();
  const MetricJudgement tuned = Judge({1.0}, {std::nullopt, std::nullopt});
  EXPECT_EQ(tuned.verdict, Verdict::kNotPrinted);
  EXPECT_TRUE(Contains(tuned.Text(), "not printed in 2 launches with the policy")) << tuned.Text();
  EXPECT_EQ(Judge({}, {1.0}).verdict, Verdict::kTooFew);
  EXPECT_EQ(Judge({1.0}, {}).verdict, Verdict::kTooFew);
  EXPECT_TRUE(Contains(Judge({1.0}, {}).Text(), "--budget"));
}

}  // namespace
}  // namespace diapason::job_tune
