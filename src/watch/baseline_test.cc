#include "watch/baseline.h"

#include <gtest/gtest.h>

#include "watch/testing.h"

namespace diapason::watch {
namespace {

// Samples around `level`, `spread` to both sides.
Baseline Around(const std::string& name, double level, double spread, size_t count) {
  MetricSamples samples;
  for (size_t i = 0; i < count; ++i) {
    samples.Add({{name, level + spread * (static_cast<double>(i % 5) - 2) / 2}});
  }
  return Summarize(samples);
}

Severity Judge(const std::string& name, const Baseline& then, const Baseline& now) {
  const auto findings = CompareWithBaseline(then, now);
  EXPECT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].id, "watch." + name);
  return findings[0].severity;
}

TEST(Baseline, MedianIntervalAndNoise) {
  const Baseline baseline = Around("cpu", 10, 2, 25);
  const MetricSummary& summary = baseline.at("cpu");
  EXPECT_EQ(summary.samples, 25u);
  EXPECT_DOUBLE_EQ(summary.median, 10);
  EXPECT_LE(summary.low, 10);
  EXPECT_GE(summary.high, 10);
  EXPECT_DOUBLE_EQ(summary.noise, 1.4826);
}

TEST(Baseline, WorseBetterAndTheSame) {
  const Baseline fast = Around("operations_per_s", 200, 4, 20);
  EXPECT_EQ(Judge("operations_per_s", fast, Around("operations_per_s", 150, 4, 20)),
            Severity::kWarning);
  EXPECT_EQ(Judge("operations_per_s", fast, Around("operations_per_s", 250, 4, 20)),
            Severity::kFine);
  EXPECT_EQ(Judge("operations_per_s", fast, Around("operations_per_s", 190, 4, 20)),
            Severity::kFine);
  const Baseline idle = Around("progress_cpu", 0.5, 0.02, 20);
  EXPECT_EQ(Judge("progress_cpu", idle, Around("progress_cpu", 0.9, 0.02, 20)), Severity::kWarning);
  EXPECT_EQ(Judge("progress_cpu", idle, Around("progress_cpu", 0.2, 0.02, 20)), Severity::kFine);
  // More than a tenth, and too little to matter.
  EXPECT_EQ(Judge("progress_cpu", Around("progress_cpu", 0.01, 0, 20),
                  Around("progress_cpu", 0.03, 0, 20)),
            Severity::kFine);
}

TEST(Baseline, NoiseIsNoChange) {
  // The medians differ by a fifth, and the samples by much more.
  EXPECT_EQ(Judge("operations_per_s", Around("operations_per_s", 200, 150, 12),
                  Around("operations_per_s", 160, 150, 12)),
            Severity::kFine);
}

TEST(Baseline, TooFewSamplesAreSaid) {
  const Baseline many = Around("cpu", 1, 0, 20);
  const Baseline few = Around("cpu", 9, 0, kLeastSamples - 1);
  EXPECT_EQ(Judge("cpu", many, few), Severity::kNote);
  EXPECT_EQ(Judge("cpu", few, many), Severity::kNote);
  EXPECT_EQ(Judge("cpu", many, Around("cpu", 9, 0, kLeastSamples)), Severity::kWarning);
  EXPECT_TRUE(HasTitle(CompareWithBaseline(many, {}), "not to be seen now"));
}

TEST(Baseline, WrittenAndReadBack) {
  const Baseline baseline = Around("cpu", 1.25, 0.1, 20);
  const std::string text = BaselineJson(baseline, 1);
  const Result<Baseline> read = ParseBaseline(text, "b");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_DOUBLE_EQ(read.value().at("cpu").median, baseline.at("cpu").median);
  EXPECT_DOUBLE_EQ(read.value().at("cpu").noise, baseline.at("cpu").noise);
  EXPECT_EQ(read.value().at("cpu").samples, 20u);
}

TEST(Baseline, HostileFiles) {
  const std::string start = "{\"type\":\"diapason-watch-baseline\",\"version\":1,";
  for (const std::string& text :
       {std::string(""), std::string("[]"), std::string("{}"), std::string(100000, '['),
        std::string("{\"type\":\"diapason-watch-baseline\",\"version\":2,\"metrics\":{}}"),
        start + "\"metrics\":[]}", start + "\"metrics\":{\"cpu\":1}}",
        start + "\"metrics\":{\"cpu\":{\"samples\":-1,\"median\":1,\"low\":1,\"high\":1,"
                "\"noise\":0}}}",
        start + "\"metrics\":{\"cpu\":{\"samples\":9,\"median\":1,\"low\":2,\"high\":3,"
                "\"noise\":0}}}",
        start + "\"metrics\":{\"cpu\":{\"samples\":9,\"median\":1e999,\"low\":2,\"high\":3,"
                "\"noise\":0}}}"}) {
    EXPECT_FALSE(ParseBaseline(text, "b").ok()) << text.substr(0, 100);
  }
}

TEST(Baseline, MetricsAreMeansOverProcessesThatHaveThem) {
  WatchView view;
  view.processes.resize(3);
  view.processes[0].first = false;
  view.processes[0].rate.total.user = 1;
  view.processes[0].rate.progress_threads = 1;
  view.processes[0].rate.progress_cpu = 0.5;
  view.processes[1].first = false;
  view.processes[1].rate.total.user = 3;
  view.processes[2].ended = true;
  const Metrics metrics = MetricsOf(view);
  EXPECT_DOUBLE_EQ(metrics.at("cpu"), 2);
  EXPECT_DOUBLE_EQ(metrics.at("progress_cpu"), 0.5);
  EXPECT_EQ(metrics.count("operations_per_s"), 0u);
  EXPECT_EQ(metrics.count("wait_share"), 0u);
}

}  // namespace
}  // namespace diapason::watch
