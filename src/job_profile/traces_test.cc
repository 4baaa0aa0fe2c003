// Profiles of real jobs, compared with a trace of their kernels (tests/data/profile-traces).
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/file.h"
#include "base/stats.h"
#include "base/text.h"
#include "domain/vocabulary.h"
#include "job_profile/iterations.h"

namespace diapason::job_profile {
namespace {

struct TracedJob {
  Timeline timeline;
  std::map<std::string, double> truth;  // microseconds
};

uint64_t Number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  EXPECT_TRUE(error == std::errc()) << text;
  return value;
}

TracedJob ReadJob(const std::string& name) {
  TracedJob job;
  const std::string text =
      ReadFile(DIAPASON_SOURCE_DIR "/tests/data/profile-traces/" + name, 1 << 20).value();
  for (const std::string_view line : Split(text, '\n')) {
    if (line.empty() || line.starts_with("collective,")) continue;
    if (line.starts_with("#")) {
      for (const std::string_view word : Split(line, ' ')) {
        const size_t at = word.find('=');
        if (at != std::string_view::npos) {
          job.truth[std::string(word.substr(0, at))] = std::stod(std::string(word.substr(at + 1)));
        }
      }
      continue;
    }
    const auto fields = Split(line, ',');
    Call call;
    call.collective = static_cast<uint8_t>(ParseCollective(Library::kNccl, fields[0]).value());
    call.bytes = Number(fields[1]);
    call.host_ns = Number(fields[2]);
    call.start_ns = Number(fields[3]);
    call.stop_ns = Number(fields[4]);
    job.timeline.calls.push_back(call);
  }
  std::stable_sort(job.timeline.calls.begin(), job.timeline.calls.end(),
                   [](const Call& a, const Call& b) { return a.host_ns < b.host_ns; });
  return job;
}

class Traces : public testing::TestWithParam<std::string> {};

void ExpectIterations(const TracedJob& job, const RankIterations& found) {
  ASSERT_EQ(found.source, Source::kOrder);
  std::vector<double> lengths;
  for (const RankIteration& one : found.timed) {
    EXPECT_EQ(static_cast<double>(one.end - one.first), job.truth.at("calls"));
    lengths.push_back(one.length * 1e6);
  }
  const double all = static_cast<double>(job.timeline.calls.size()) / job.truth.at("calls");
  EXPECT_GT(static_cast<double>(lengths.size()), 0.85 * all);
  EXPECT_NEAR(Median(lengths), job.truth.at("iteration"), 0.03 * job.truth.at("iteration"));
}

TEST_P(Traces, IterationsAreFound) {
  const TracedJob job = ReadJob(GetParam());
  ExpectIterations(job, FindIterations(job.timeline));
}

TEST_P(Traces, IterationsAreFoundOnTheHostsClock) {
  TracedJob job = ReadJob(GetParam());
  for (Call& call : job.timeline.calls) call.start_ns = call.stop_ns = 0;
  ExpectIterations(job, FindIterations(job.timeline));
}

TEST_P(Traces, ExposedAndHiddenTimeAreThoseOfTheTrace) {
  const TracedJob job = ReadJob(GetParam());
  const RankIterations found = FindIterations(job.timeline);
  const PositionSpans spans = SpansOf(job.timeline, found);
  double total = 0;
  double exposed = 0;
  double low = 0;
  double high = 0;
  for (const PositionTime& one : EstimateExposure(spans.iterations, spans.examples.size())) {
    total += one.total * 1e6;
    exposed += one.exposed * 1e6;
    low += one.low * 1e6;
    high += one.high * 1e6;
  }
  const double collective = job.truth.at("collective");
  RecordProperty("exposed_us", std::to_string(exposed));
  EXPECT_NEAR(total, collective, 0.05 * collective);
  EXPECT_NEAR(exposed, job.truth.at("exposed"), 0.1 * collective);
  EXPECT_NEAR(total - exposed, job.truth.at("hidden"), 0.1 * collective);
  // The plugin's times of kernels are a few microseconds shorter than those of the trace.
  EXPECT_LE(low, job.truth.at("exposed"));
  EXPECT_GE(high, job.truth.at("exposed") - 0.04 * collective);
}

INSTANTIATE_TEST_SUITE_P(All, Traces,
                         testing::Values("decode.0.csv", "decode.2.csv", "ddp.0.csv", "ddp.2.csv",
                                         "fsdp2.0.csv", "fsdp2.2.csv"),
                         [](const auto& one) {
                           std::string name = one.param.substr(0, one.param.size() - 4);
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace diapason::job_profile
