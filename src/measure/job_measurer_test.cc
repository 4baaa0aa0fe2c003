#include "measure/job_measurer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "measure/pairs.h"

namespace diapason::measure {
namespace {

using dataset::SampleOutcome;

// A program in the place of the tool: says hello as ranks do, then does as it is told.
class FakeRanks {
 public:
  explicit FakeRanks(const std::string& then) {
    GroupOptions options;
    options.backend = "sim";
    options.cluster = "h100x8";
    options.rank = 0;
    options.size = 1;
    auto group = Group::Create(options);
    std::string hello;
    const Status served = ServeOrders(
        group.value().get(), "h100x8", []() -> Result<std::string> { return NotFound("end"); },
        [&hello](const std::string& line) {
          hello = line;
          return Status();
        });
    EXPECT_TRUE(served.ok()) << served.message();
    char name[] = "/tmp/diapason-ranks-XXXXXX";
    const int fd = ::mkstemp(name);
    const std::string script =
        "#!/bin/sh\necho 'a line of somebody else'\necho '" + hello + "'\n" + then;
    EXPECT_EQ(::write(fd, script.data(), script.size()), static_cast<ssize_t>(script.size()));
    ::fchmod(fd, 0700);
    ::close(fd);
    path_ = name;
  }
  ~FakeRanks() { ::unlink(path_.c_str()); }
  // The default limit is long enough for a slow machine.
  JobMeasurerOptions Options(double limit = 120) const {
    JobMeasurerOptions options;
    options.backend = "gloo";
    options.launcher.self = path_;
    options.limit = limit;
    options.start_limit = 120;
    options.grace = 0.5;
    return options;
  }

 private:
  std::string path_;
};

TEST(JobTest, RanksThatSayNothingMoreAreAHangAndAreStartedAgain) {
  const FakeRanks ranks("read line; exec sleep 600\n");
  auto measurer = JobMeasurer::Create(ranks.Options(0.1));
  ASSERT_TRUE(measurer.ok()) << measurer.status().message();
  for (int launches = 1; launches <= 2; ++launches) {
    const Result<Measurement> measurement = measurer.value()->Measure({});
    ASSERT_TRUE(measurement.ok()) << measurement.status().message();
    EXPECT_EQ(measurement.value().outcome, SampleOutcome::kHang);
    EXPECT_EQ(measurer.value()->launches(), launches);
  }
}

TEST(JobTest, RanksThatDieAreACrashWithTheirLastWords) {
  const FakeRanks ranks("read line; echo 'cuda says no' >&2; exit 3\n");
  auto measurer = JobMeasurer::Create(ranks.Options());
  ASSERT_TRUE(measurer.ok()) << measurer.status().message();
  const Result<Measurement> measurement = measurer.value()->Measure({});
  ASSERT_TRUE(measurement.ok()) << measurement.status().message();
  EXPECT_EQ(measurement.value().outcome, SampleOutcome::kCrash);
  EXPECT_NE(measurement.value().note.find("cuda says no"), std::string::npos)
      << measurement.value().note;
  // The first ranks were not fresh when they were asked: a second launch had to confirm it.
  EXPECT_EQ(measurer.value()->launches(), 2);
}

TEST(JobTest, AnAnswerThatWasDamagedIsNoFigure) {
  const FakeRanks ranks(
      "read line; echo '@diapason answer 0 1e-5 1e-5 1 0 : 0123456789abcdef'; sleep 600\n");
  auto measurer = JobMeasurer::Create(ranks.Options());
  ASSERT_TRUE(measurer.ok()) << measurer.status().message();
  const Result<Measurement> measurement = measurer.value()->Measure({});
  ASSERT_TRUE(measurement.ok()) << measurement.status().message();
  EXPECT_EQ(measurement.value().outcome, SampleOutcome::kCrash);
}

TEST(JobTest, RanksThatDieInAPairOrAnIterationAreStartedAgain) {
  const FakeRanks ranks("read line; echo 'cuda says no' >&2; exit 3\n");
  auto measurer = JobMeasurer::Create(ranks.Options());
  ASSERT_TRUE(measurer.ok()) << measurer.status().message();
  const Result<Measurement> pair = measurer.value()->MeasurePair(0, 1, 1024, 1);
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  EXPECT_EQ(pair.value().outcome, SampleOutcome::kCrash);
  const Result<IterationSpec> spec = PresetSpec("ddp", {});
  const Result<IterationTimes> times = measurer.value()->Iterate(spec.value());
  ASSERT_FALSE(times.ok());
  EXPECT_NE(times.status().message().find("cuda says no"), std::string::npos)
      << times.status().message();
  EXPECT_EQ(measurer.value()->launches(), 2);
}

TEST(JobTest, RanksThatNeverStartAreAnErrorThatSaysWhy) {
  JobMeasurerOptions options;
  options.launcher.self = "/nonexistent/diapason";
  EXPECT_EQ(JobMeasurer::Create(options).status().code(), ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace diapason::measure
