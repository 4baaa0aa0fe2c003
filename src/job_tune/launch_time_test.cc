#include "job_tune/launch_time.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/temporary_file.h"
#include "base/text.h"
#include "domain/schedule.h"
#include "journal/record.h"

namespace diapason::job_tune {
namespace {

using journal::JournalRecord;
using journal::RecordKind;

constexpr uint64_t kMs = 1000000;
constexpr uint64_t kBytes = 4096;

// The journal of one rank.
class Writer {
 public:
  explicit Writer(int rank = 0) {
    journal::JournalComm comm;
    comm.number = 1;
    comm.id = 42;
    comm.api = 5;
    comm.library_version = 22809;
    comm.shape = {1, 2};
    comm.rank = rank;
    text_ = Format("{{\"type\":\"journal\",\"version\":1,\"host\":\"h\",\"pid\":{}}}\n", rank + 7) +
            journal::CommunicatorLine(comm) + "\n";
  }
  void Decide(uint64_t time_ns, uint64_t bytes, bool captured) {
    JournalRecord record;
    record.kind = RecordKind::kDecision;
    record.communicator = 1;
    record.call = ++calls_;
    record.collective = static_cast<uint8_t>(Collective::kAllReduce);
    record.bytes = bytes;
    record.time_ns = time_ns;
    record.captured = captured;
    Add(record);
    if (captured) return;
    record.kind = RecordKind::kRan;
    Add(record);
  }
  void Replay(uint64_t time_ns, uint64_t bytes) {
    JournalRecord record;
    record.kind = RecordKind::kRan;
    record.communicator = 1;
    record.collective = static_cast<uint8_t>(Collective::kAllReduce);
    record.bytes = bytes;
    record.time_ns = time_ns;
    record.captured = true;
    Add(record);
  }
  void Step(uint64_t time_ns) {
    JournalRecord record;
    record.kind = RecordKind::kStep;
    record.time_ns = time_ns;
    Add(record);
  }
  std::string Write(const std::string& path) const {
    std::ofstream(path) << text_;
    return path;
  }

 private:
  void Add(const JournalRecord& record) {
    text_ += journal::RecordLine(record, Library::kNccl) + "\n";
  }
  std::string text_;
  uint32_t calls_ = 0;
};

class LaunchTimeTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  // Ten steps of 20 ms call by call, a capture, then steps of `length` each.
  std::string Marked(const std::string& name, int rank, uint64_t length, uint64_t steps) const {
    Writer writer(rank);
    uint64_t now = 1000 * kMs;
    for (int i = 0; i < 10; ++i, now += 20 * kMs) {
      writer.Decide(now, kBytes, false);
      writer.Step(now + kMs);
    }
    writer.Decide(now, kBytes, true);
    for (uint64_t i = 0; i <= steps; ++i) writer.Step(now + (1 + i) * length);
    return writer.Write(Path(name));
  }
  TemporaryFolder folder_;
};

TEST_F(LaunchTimeTest, TheIterationsAfterTheCapture) {
  LaunchTiming timing;
  timing.source = job_profile::Source::kSteps;
  IterationTimer timer(timing);
  const LaunchTime time =
      timer.Read({Marked("a", 0, 6 * kMs, 12), Marked("b", 1, 6 * kMs, 12), Path("none")});
  EXPECT_NEAR(time.seconds, 0.006, 1e-9);
  EXPECT_EQ(time.iterations, 12u);
  EXPECT_EQ(time.trouble, "");
  // What is added is read with the next look.
  (void)Marked("a", 0, 6 * kMs, 30);
  EXPECT_EQ(timer.Read({Path("a")}).iterations, 30u);
}

TEST_F(LaunchTimeTest, ALaunchWithoutIterations) {
  LaunchTiming timing;
  timing.source = job_profile::Source::kSteps;
  const LaunchTime few = IterationTimer(timing).Read({Marked("a", 0, 6 * kMs, 2)});
  EXPECT_EQ(few.seconds, 0);
  EXPECT_NE(few.trouble.find("it had 0 iterations"), std::string::npos) << few.trouble;
  EXPECT_NE(IterationTimer(timing).Read({}).trouble, "");
  // Iterations that are found otherwise are not those of the look.
  timing.source = job_profile::Source::kOrder;
  EXPECT_EQ(IterationTimer(timing).Read({Marked("a", 0, 6 * kMs, 30)}).seconds, 0);
}

// Replays that are reported: an iteration has three of them.
TEST_F(LaunchTimeTest, CountedCalls) {
  Writer writer;
  for (uint64_t i = 0; i < 20; ++i) writer.Decide((1000 + 5 * i) * kMs, kBytes, false);
  writer.Decide(1200 * kMs, kBytes, true);
  for (uint64_t i = 0; i < 30; ++i) writer.Replay((1300 + 2 * i) * kMs, kBytes);
  job_profile::JobProfile look;
  look.source = job_profile::Source::kOrder;
  look.iteration = 0.006;
  look.captures = true;
  look.after_capture = 9;
  TunedContext unseen;
  unseen.unseen = true;
  unseen.calls_per_iteration = 7;
  TunedContext seen;
  seen.context = {Library::kNccl, Collective::kAllReduce, SizeBand(kBytes), {1, 2}};
  seen.calls_per_iteration = 3;
  const LaunchTiming timing = TimingOf(look, {unseen, seen});
  EXPECT_FALSE(timing.whole);
  EXPECT_EQ(timing.counted.per_iteration, 3u);
  const LaunchTime time = IterationTimer(timing).Read({writer.Write(Path("a"))});
  EXPECT_NEAR(time.seconds, 0.006, 1e-9);
  // Calls that are all alike, 32 of them together in the look.
  look.source = job_profile::Source::kCalls;
  EXPECT_NEAR(IterationTimer(TimingOf(look, {seen})).Read({Path("a")}).seconds, 0.006, 1e-9);
  look.after_capture = 0;
  EXPECT_TRUE(TimingOf(look, {seen}).whole);
}

TEST_F(LaunchTimeTest, WholeLaunches) {
  Writer first(0);
  first.Decide(2000 * kMs, kBytes, true);
  Writer second(1);
  second.Decide(1500 * kMs, kBytes, true);
  const std::vector<std::string> journals{first.Write(Path("a")), second.Write(Path("b"))};
  EXPECT_NEAR(WholeLaunchTime(journals, 4000 * kMs).seconds, 2.5, 1e-9);
  EXPECT_EQ(WholeLaunchTime(journals, 1000 * kMs).seconds, 0);
  EXPECT_NE(WholeLaunchTime(journals, 1000 * kMs).trouble, "");
  EXPECT_EQ(WholeLaunchTime({}, 1000 * kMs).trouble, "it made no call");
}

}  // namespace
}  // namespace diapason::job_tune
