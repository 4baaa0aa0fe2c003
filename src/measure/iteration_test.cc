#include "measure/iteration.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "base/stats.h"
#include "base/text.h"
#include "comm/backends/nccl/fake_gpu.h"
#include "comm/backends/sim/cluster.h"
#include "comm/backends/sim/testing.h"
#include "measure/compute.h"

namespace diapason::measure {
namespace {

std::string TemporaryPath(const std::string& name) {
  return (std::filesystem::path(testing::TempDir()) /
          Format("%d_%s", static_cast<int>(getpid()), name.c_str()))
      .string();
}

// ---- the spec ----

TEST(Spec, EveryPresetSurvivesTheWire) {
  for (const std::string& name : PresetNames()) {
    for (const bool host : {false, true}) {
      Result<IterationSpec> made = PresetSpec(name, {.parts = 3, .bytes = 0, .host = host});
      ASSERT_TRUE(made.ok()) << made.status().message();
      IterationSpec spec = made.value();
      EXPECT_EQ(spec.preset, name);
      spec.compute = 0.1 + 0.2;  // no short decimal
      spec.overlap = host;
      spec.type = DataType::kBf16;
      spec.buckets[1].config = {2, -1, 17, 1 << 20};
      const std::string text = EncodeSpec(spec);
      EXPECT_EQ(text.find('\n'), std::string::npos);
      const Result<IterationSpec> back = DecodeSpec(text);
      ASSERT_TRUE(back.ok()) << back.status().message();
      EXPECT_EQ(back.value(), spec);
    }
  }
}

TEST(Spec, PresetsAreWhatTheirNamesSay) {
  const IterationSpec ddp = PresetSpec("ddp", {.parts = 2}).value();
  ASSERT_EQ(ddp.buckets.size(), 2U);
  EXPECT_EQ(ddp.buckets[0], (Bucket{Operation::kAllReduce, 25 << 20, 0, 4, 6, {}}));
  EXPECT_EQ(ddp.buckets[1], (Bucket{Operation::kAllReduce, 25 << 20, 0, 6, 6, {}}));

  const IterationSpec fsdp = PresetSpec("FSDP", {.parts = 3, .bytes = 4096}).value();
  std::vector<int> gathers;
  std::vector<int> scatters;
  for (const Bucket& bucket : fsdp.buckets) {
    EXPECT_EQ(bucket.bytes, 4096U);
    (bucket.operation == Operation::kAllGather ? gathers : scatters).push_back(bucket.after);
  }
  EXPECT_EQ(gathers, (std::vector<int>{0, 0, 1, 3, 5}));
  EXPECT_EQ(scatters, (std::vector<int>{5, 7, 9}));

  const IterationSpec tp = PresetSpec("tp", {.parts = 2}).value();
  EXPECT_EQ(tp.buckets.size(), 4U);
  for (const Bucket& bucket : tp.buckets) EXPECT_EQ(bucket.after, bucket.before);
  const IterationSpec moe = PresetSpec("moe", {}).value();
  EXPECT_EQ(moe.communicators, 2);
  for (const Bucket& bucket : moe.buckets) {
    EXPECT_EQ(bucket.communicator, bucket.operation == Operation::kAllToAll ? 0 : 1);
  }
}

TEST(Spec, UnknownPresetsAndBadNumbersAreRefused) {
  EXPECT_EQ(PresetSpec("dpp", {}).status().message(), "unknown preset 'dpp'; did you mean 'ddp'?");
  EXPECT_FALSE(PresetSpec("", {}).ok());
  EXPECT_FALSE(PresetSpec("ddp", {.parts = -1}).ok());
  EXPECT_FALSE(PresetSpec("ddp", {.parts = 5000}).ok());
  EXPECT_FALSE(PresetSpec("ddp", {.parts = 4, .bytes = uint64_t{1} << 62}).ok());
  EXPECT_FALSE(PresetSpec("ddp", {.parts = 1000, .bytes = uint64_t{1} << 39}).ok());

  const IterationSpec fine = PresetSpec("ddp", {}).value();
  const auto refused = [&](const std::function<void(IterationSpec*)>& change) {
    IterationSpec spec = fine;
    change(&spec);
    return !CheckSpec(spec).ok();
  };
  EXPECT_FALSE(refused([](IterationSpec*) {}));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->steps = 0; }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->warmups = -1; }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->compute = -1e-9; }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->compute = std::nan(""); }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->chunks = 0; }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->chunks = 3; }));  // buckets begin later
  EXPECT_TRUE(refused([](IterationSpec* s) { s->buckets.clear(); }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->communicators = 9; }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->threads = 0; }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->limit = 0; }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->compute = 40; }));  // of a limit of 60
  EXPECT_TRUE(refused([](IterationSpec* s) { s->preset = "a b"; }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->buckets[0].communicator = 1; }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->buckets[0].bytes = 3; }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->buckets[0].before = 1; }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->buckets[0].operation = Operation::kSend; }));
  EXPECT_TRUE(refused([](IterationSpec* s) { s->buckets[0].operation = Operation::kBroadcast; }));
}

TEST(Spec, HostileTextIsRefused) {
  const std::string fine = EncodeSpec(PresetSpec("tp", {.parts = 1, .bytes = 4096}).value());
  ASSERT_TRUE(DecodeSpec(fine).ok());
  for (size_t length = 0; length < fine.size(); ++length) {
    EXPECT_FALSE(DecodeSpec(fine.substr(0, length)).ok()) << fine.substr(0, length);
  }
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = fine;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return DecodeSpec(text.replace(at, from.size(), to)).ok();
  };
  EXPECT_TRUE(with("steps=20", "steps=21"));
  EXPECT_FALSE(with("steps=20", "steps=99999999999999999999"));
  EXPECT_FALSE(with("steps=20", "steps=4294967297"));
  EXPECT_FALSE(with("steps=20", "steps=-1"));
  EXPECT_FALSE(with("steps=20", "steps=20 steps=20"));
  EXPECT_FALSE(with("overlap=1", "overlap=2"));
  EXPECT_FALSE(with("limit=60", "limit=inf"));
  EXPECT_FALSE(with("limit=60", "limit=nan"));
  EXPECT_FALSE(with("limit=60", "limit=60x"));
  EXPECT_FALSE(with("type=f32", "type=f31"));
  EXPECT_FALSE(with("all_reduce:", "allreduce_x:"));
  EXPECT_FALSE(with(":4096:", ":-4096:"));
  EXPECT_FALSE(with(":4096:", ":18446744073709551615:"));
  EXPECT_FALSE(with(":4096:", ":4096:0:"));
  EXPECT_FALSE(with("preset=tp", "preset=../../etc"));
  EXPECT_FALSE(with("iteration ", "Iteration "));
  EXPECT_FALSE(DecodeSpec(fine + " more=1").ok());
  EXPECT_FALSE(DecodeSpec(fine + "\n").ok());
  EXPECT_FALSE(DecodeSpec(std::string(4 << 20, ',')).ok());
  EXPECT_FALSE(with(" end", std::string(5000, ',') + " end"));
  EXPECT_FALSE(DecodeSpec("iteration end").ok());
  EXPECT_FALSE(DecodeSpec("iteration  end").ok());
  EXPECT_FALSE(DecodeSpec(std::string("iteration preset=\0", 18)).ok());
}

// ---- runs on the simulated cluster ----

struct Ran {
  std::vector<Result<IterationTimes>> ranks;
  const IterationTimes& times() const { return ranks[0].value(); }
};

// Ranks as threads. `spec_of` may give each another spec.
Ran RunRanks(const std::string& cluster, int ranks, uint64_t seed,
             const std::function<IterationSpec(int rank)>& spec_of, bool choose = false) {
  Ran ran;
  ran.ranks.resize(static_cast<size_t>(ranks), Internal("did not run"));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      GroupOptions options = comm::sim::SimulatedRank(rank, ranks, cluster);
      options.seed = seed;
      options.choose = choose;
      Result<std::unique_ptr<Group>> group = Group::Create(options);
      auto& result = ran.ranks[static_cast<size_t>(rank)];
      if (!group.ok()) {
        result = group.status();
        return;
      }
      result = RunIterations(group.value().get(), spec_of(rank));
      // Nobody leaves before all are through.
      static_cast<void>(group.value()->Barrier());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ran;
}

IterationTimes RunFine(const std::string& cluster, int ranks, uint64_t seed,
                       const IterationSpec& spec) {
  const Ran ran = RunRanks(cluster, ranks, seed, [&](int) { return spec; });
  for (const auto& result : ran.ranks) {
    EXPECT_TRUE(result.ok()) << result.status().message();
    if (!result.ok()) return {};
    // The slowest rank's times are everybody's.
    EXPECT_EQ(result.value().steps, ran.times().steps);
  }
  return ran.times();
}

// The shipped cluster without noise, so that sums come out exactly.
class QuietCluster {
 public:
  explicit QuietCluster(const std::string& more = "") : path_(TemporaryPath("quiet.toml")) {
    std::string text(comm::sim::ShippedText("h100x8").value());
    for (const std::string key : {"sigma = ", "rank_sigma = ", "spike_share = "}) {
      for (size_t at = text.find("\n" + key); at != std::string::npos;
           at = text.find("\n" + key, at + 1)) {
        const size_t value = at + 1 + key.size();
        text.replace(value, text.find_first_of(" \n#", value) - value, "0.0");
      }
    }
    std::ofstream(path_) << text << more;
  }
  ~QuietCluster() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

IterationSpec Small(const std::string& preset) {
  IterationSpec spec = PresetSpec(preset, {.parts = 3, .bytes = 1 << 18, .host = false}).value();
  spec.steps = 6;
  spec.warmups = 1;
  spec.compute = 1e-3;
  return spec;
}

TEST(Iterations, EveryPresetRuns) {
  for (const std::string& name : PresetNames()) {
    for (const bool overlap : {true, false}) {
      IterationSpec spec = Small(name);
      spec.overlap = overlap;
      const IterationTimes times = RunFine("h100x8", 4, 1, spec);
      ASSERT_EQ(times.steps.size(), 6U) << name;
      ASSERT_EQ(times.compute.size(), 6U);
      ASSERT_EQ(times.communication.size(), 6U);
      EXPECT_NEAR(Median(times.compute), 1e-3, 2e-4) << name;
      EXPECT_GT(Median(times.communication), 1e-5);
      EXPECT_GT(Median(times.steps), Median(times.compute));
      EXPECT_GT(ExposedSeconds(times), 0);
      EXPECT_GE(OverlapEfficiency(times), 0);
      EXPECT_LE(OverlapEfficiency(times), 1);
    }
  }
}

TEST(Iterations, OverlapHidesCommunication) {
  const QuietCluster cluster;
  for (const std::string name : {"ddp", "fsdp", "moe"}) {
    IterationSpec spec = Small(name);
    const IterationTimes beside = RunFine(cluster.path(), 8, 1, spec);
    const double sum = Median(beside.compute) + Median(beside.communication);
    EXPECT_LT(Median(beside.steps), 0.97 * sum) << name;
    EXPECT_GT(OverlapEfficiency(beside), 0.1) << name;
    spec.overlap = false;
    const IterationTimes apart = RunFine(cluster.path(), 8, 1, spec);
    EXPECT_LT(Median(beside.steps), Median(apart.steps)) << name;
  }
}

TEST(Iterations, WithoutOverlapAStepIsTheSum) {
  const QuietCluster cluster;
  for (const std::string& name : PresetNames()) {
    IterationSpec spec = Small(name);
    spec.overlap = false;
    const IterationTimes times = RunFine(cluster.path(), 8, 1, spec);
    for (size_t i = 0; i < times.steps.size(); ++i) {
      EXPECT_NEAR(times.compute[i], 1e-3, 1e-12);
      EXPECT_NEAR(times.steps[i], times.compute[i] + times.communication[i], 1e-9) << name;
    }
    EXPECT_NEAR(OverlapEfficiency(times), 0, 1e-3);
  }
}

TEST(Iterations, WhatIsWaitedForIsNotHidden) {
  const QuietCluster cluster;
  const IterationTimes times = RunFine(cluster.path(), 8, 1, Small("tp"));
  for (size_t i = 0; i < times.steps.size(); ++i) {
    EXPECT_NEAR(times.steps[i], times.compute[i] + times.communication[i], 1e-9);
  }
}

TEST(Iterations, TheSlowestRankCounts) {
  const QuietCluster cluster("\n[[straggler]]\nranks = [1]\nfactor = 3\n");
  const IterationTimes times = RunFine(cluster.path(), 4, 1, Small("ddp"));
  for (const double seconds : times.compute) EXPECT_NEAR(seconds, 3e-3, 1e-12);
}

TEST(Iterations, TheSeedDecidesAndNothingElse) {
  const IterationSpec spec = Small("moe");
  const IterationTimes once = RunFine("h100x8", 8, 7, spec);
  const IterationTimes again = RunFine("h100x8", 8, 7, spec);
  EXPECT_EQ(once.steps, again.steps);
  EXPECT_EQ(once.compute, again.compute);
  EXPECT_EQ(once.communication, again.communication);
  EXPECT_NE(once.steps, RunFine("h100x8", 8, 8, spec).steps);
}

TEST(Iterations, OneRankAndNoCompute) {
  IterationSpec spec = Small("ddp");
  spec.compute = 0;
  const IterationTimes times = RunFine("h100x8", 1, 1, spec);
  EXPECT_EQ(Median(times.compute), 0);
  EXPECT_GT(Median(times.steps), 0);
}

TEST(Iterations, ConfigurationsReachTheirBuckets) {
  const QuietCluster cluster;
  IterationSpec spec = Small("ddp");
  const IterationTimes own = RunFine(cluster.path(), 8, 1, spec);
  for (Bucket& bucket : spec.buckets) bucket.config = {1, 2, 1};  // ring, simple, one channel
  const Ran chosen = RunRanks(
      cluster.path(), 8, 1, [&](int) { return spec; }, true);
  ASSERT_TRUE(chosen.ranks[0].ok()) << chosen.ranks[0].status().message();
  EXPECT_NE(Median(chosen.times().communication), Median(own.communication));
  const Ran refused = RunRanks(
      cluster.path(), 8, 1, [&](int) { return spec; }, false);
  for (const auto& result : refused.ranks) {
    ASSERT_FALSE(result.ok());
    EXPECT_NE(result.status().message().find("choose"), std::string::npos);
  }
}

TEST(Iterations, RanksThatDisagreeAllStop) {
  const Ran different = RunRanks("h100x8", 4, 1, [](int rank) {
    IterationSpec spec = Small("ddp");
    spec.steps += rank == 2 ? 1 : 0;
    return spec;
  });
  for (const auto& result : different.ranks) EXPECT_FALSE(result.ok());
  EXPECT_EQ(different.ranks[0].status().message(), "rank 2 has been asked for another iteration");
  const Ran broken = RunRanks("h100x8", 4, 1, [](int rank) {
    IterationSpec spec = Small("ddp");
    if (rank == 3) spec.steps = 0;
    return spec;
  });
  EXPECT_EQ(broken.ranks[0].status().message(),
            "rank 3 cannot take part; its own message says why");
  EXPECT_NE(broken.ranks[3].status().message().find("number of steps"), std::string::npos);
}

TEST(Iterations, FiguresOfTimes) {
  IterationTimes times;
  EXPECT_EQ(ExposedSeconds(times), 0);
  EXPECT_EQ(OverlapEfficiency(times), 0);
  times = {{7, 8, 9}, {5, 6, 7}, {4, 4, 4}};
  EXPECT_DOUBLE_EQ(ExposedSeconds(times), 2);
  EXPECT_DOUBLE_EQ(OverlapEfficiency(times), 0.5);
  times = {{5, 5}, {6, 6}, {1, 1}};
  EXPECT_EQ(ExposedSeconds(times), 0);
  EXPECT_EQ(OverlapEfficiency(times), 1);
  times = {{9}, {1}, {2}};
  EXPECT_EQ(OverlapEfficiency(times), 0);
}

// ---- what computes ----

TEST(Cpu, ThreadsComputeAndProgressIsCalled) {
  ComputerOptions options;
  options.threads = 3;
  const std::unique_ptr<Computer> computer = CpuComputer(options);
  ASSERT_TRUE(computer->Calibrate().ok());
  int calls = 0;
  ASSERT_TRUE(computer->Compute(2e-3, [&] { ++calls; }).ok());
  EXPECT_GT(calls, 2);
  ASSERT_TRUE(computer->Compute(1e-6, {}).ok());
  const Result<void*> memory = computer->Allocate(10000);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(static_cast<const char*>(memory.value())[9999], 0);
  EXPECT_FALSE(computer->Allocate(SIZE_MAX).ok());
}

// Writes down what is put into which stream: "0" computes, the others are the communicators'.
class WrittenGpu : public comm::nccl::FakeGpu {
 public:
  ~WrittenGpu() override {
    for (void* event : made_) FakeGpu::DestroyEvent(event);
  }
  Result<void*> CreateStream() override { return static_cast<void*>(&streams_[used_++]); }
  Result<void*> CreateEvent() override {
    return *made_.insert(FakeGpu::CreateEvent().value()).first;
  }
  void DestroyEvent(void* event) override {
    made_.erase(event);
    FakeGpu::DestroyEvent(event);
  }
  size_t events() const { return made_.size(); }
  Status RecordEvent(void* event, void* stream) override {
    static_cast<void>(Write("record " + Event(event) + " in " + Stream(stream)));
    return FakeGpu::RecordEvent(event, stream);
  }
  Status WaitForEvent(void* stream, void* event) override {
    return Write(Stream(stream) + " waits for " + Event(event));
  }
  Status Compute(uint32_t count, void* stream) override {
    static_cast<void>(FakeGpu::Compute(count, stream));
    return Write("compute in " + Stream(stream));
  }
  std::vector<std::string> Take() { return std::exchange(lines_, {}); }

 private:
  Status Write(std::string line) {
    lines_.push_back(std::move(line));
    return {};
  }
  std::string Stream(void* stream) const {
    return Format("%d", static_cast<int>(static_cast<char*>(stream) - streams_));
  }
  std::string Event(void* event) {
    const auto [at, fresh] = events_.try_emplace(event, events_.size());
    return Format("e%zu", at->second);
  }
  char streams_[8] = {};
  int used_ = 0;
  std::set<void*> made_;
  std::map<void*, size_t> events_;
  std::vector<std::string> lines_;
};

ComputerOptions GpuOptions(std::chrono::milliseconds limit = std::chrono::seconds(120)) {
  ComputerOptions options;
  options.step_seconds = 5e-3;
  options.communicators = 2;
  options.buckets = 3;
  options.limit = limit;
  return options;
}

TEST(Gpu, CollectivesBeginAfterComputeAndComputeAfterThem) {
  WrittenGpu gpu;
  {
    Result<std::unique_ptr<Computer>> made = GpuComputer(&gpu, 0, GpuOptions());
    ASSERT_TRUE(made.ok()) << made.status().message();
    Computer& computer = *made.value();
    EXPECT_EQ(gpu.bound, 1);
    EXPECT_EQ(computer.memory(), Memory::kDevice);
    EXPECT_NE(computer.Stream(0), computer.Stream(1));
    ASSERT_TRUE(computer.Allocate(64).ok());
    EXPECT_EQ(gpu.allocated(), 1U);
    ASSERT_TRUE(computer.Compute(1e-4, {}).ok());
    ASSERT_TRUE(computer.BeforeStart(1, 2).ok());
    ASSERT_TRUE(computer.AfterStart(1, 2).ok());
    ASSERT_TRUE(computer.Join(2).ok());
    ASSERT_TRUE(computer.Compute(1e-4, {}).ok());
    ASSERT_TRUE(computer.Finish([] { return Status(); }).ok());
    EXPECT_EQ(gpu.Take(), (std::vector<std::string>{
                              "compute in 0", "record e0 in 0", "2 waits for e0", "record e1 in 2",
                              "0 waits for e1", "compute in 0", "record e2 in 1", "0 waits for e2",
                              "record e3 in 2", "0 waits for e3", "record e4 in 0"}));
  }
  EXPECT_EQ(gpu.allocated(), 0U);
  EXPECT_EQ(gpu.events(), 0U);
  EXPECT_EQ(gpu.bound, 0);
}

TEST(Gpu, ComputeIsCutIntoKernelsAndCorrected) {
  WrittenGpu gpu;
  ComputerOptions options = GpuOptions();
  Result<std::unique_ptr<Computer>> made = GpuComputer(&gpu, 0, options);
  ASSERT_TRUE(made.ok());
  ASSERT_TRUE(made.value()->Compute(5e-3, {}).ok());
  ASSERT_EQ(gpu.rounds.size(), 25U);
  const uint32_t rounds = gpu.rounds[0];
  made.value()->Correct(0.5);
  ASSERT_TRUE(made.value()->Compute(5e-3, {}).ok());
  ASSERT_EQ(gpu.rounds.size(), 50U);
  EXPECT_EQ(gpu.rounds[49], 2 * rounds);
  // However long a step is, the stream's queue does not fill up.
  options.step_seconds = 600;
  made = GpuComputer(&gpu, 0, options);
  gpu.rounds.clear();
  ASSERT_TRUE(made.value()->Compute(600, {}).ok());
  EXPECT_EQ(gpu.rounds.size(), 256U);
  gpu.rounds.clear();
  ASSERT_TRUE(made.value()->Compute(0, {}).ok());
  EXPECT_TRUE(gpu.rounds.empty());
  // Nothing takes any time here: calibrating ends all the same.
  ASSERT_TRUE(made.value()->Calibrate().ok());
}

TEST(Gpu, AStepIsGivenUpAtOnceWhereARankHasEnded) {
  WrittenGpu gpu;
  Result<std::unique_ptr<Computer>> made = GpuComputer(&gpu, 0, GpuOptions());
  ASSERT_TRUE(made.ok());
  gpu.HoldUp();
  const Status lost = made.value()->Finish([] { return PeerLost("rank 1 has ended"); });
  EXPECT_EQ(lost.message(), "rank 1 has ended");
}

TEST(Gpu, AStepThatDoesNotEndIsGivenUp) {
  WrittenGpu gpu;
  {
    Result<std::unique_ptr<Computer>> made =
        GpuComputer(&gpu, 0, GpuOptions(std::chrono::milliseconds(50)));
    ASSERT_TRUE(made.ok());
    ASSERT_TRUE(made.value()->Allocate(64).ok());
    gpu.HoldUp();
    const Status late = made.value()->Finish([] { return Status(); });
    ASSERT_FALSE(late.ok());
    EXPECT_EQ(late.code(), ErrorCode::kTimeout);
  }
  // What the GPU may still use is not given back.
  EXPECT_EQ(gpu.allocated(), 1U);
  gpu.LetGo();
}

// ---- rewards ----

std::string Content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(Rewards, LinesAreAppendedWhole) {
  const std::string path = TemporaryPath("rewards.csv");
  IterationSpec spec = Small("fsdp");
  spec.buckets[2].bytes = 1 << 20;
  IterationTimes times{{1e-3, 0.0025}, {}, {}};
  ASSERT_TRUE(AppendRewards(path, spec, times, 2, 16).ok());
  EXPECT_EQ(Content(path), "allgather,1048576,2,16,1.000000\nallgather,1048576,2,16,2.500000\n");
  std::ofstream(path) << "cut off";
  times.steps = {0.5};
  spec.buckets[2].operation = Operation::kAllToAll;
  ASSERT_TRUE(AppendRewards(path, spec, times, 1, 1).ok());
  EXPECT_EQ(Content(path), "cut off\nallgather,262144,1,1,500.000000\n");
  spec.buckets = {spec.buckets[2]};
  ASSERT_TRUE(AppendRewards(path, spec, times, 1, 1).ok());
  EXPECT_EQ(Content(path),
            "cut off\nallgather,262144,1,1,500.000000\nalltoall,1048576,1,1,500.000000\n");
  std::filesystem::remove(path);
  EXPECT_FALSE(AppendRewards(testing::TempDir(), spec, times, 1, 1).ok());
  EXPECT_FALSE(AppendRewards("/nowhere/at/all.csv", spec, times, 1, 1).ok());
  EXPECT_FALSE(AppendRewards("/dev/null", spec, times, 1, 1).ok());
}

}  // namespace
}  // namespace diapason::measure
