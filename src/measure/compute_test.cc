#include "measure/compute.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "comm/backends/nccl/fake_gpu.h"
#include "comm/backends/sim/testing.h"

namespace diapason::measure {
namespace {

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
    return Format("{}", static_cast<int>(static_cast<char*>(stream) - streams_));
  }
  std::string Event(void* event) {
    const auto [at, fresh] = events_.try_emplace(event, events_.size());
    return Format("e{}", at->second);
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

}  // namespace
}  // namespace diapason::measure
