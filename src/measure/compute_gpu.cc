#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "base/stats.h"
#include "base/text.h"
#include "comm/backend_facts.h"
#include "measure/compute.h"

namespace diapason::measure {
namespace {

using comm::gpu::Runtime;
using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Compute is cut into kernels of this length, as real steps are: a collective's kernel gets its
// place on the GPU when one of them ends. Long steps have longer ones, so that the queue of a
// stream, which holds a thousand, is never full: a launch would then wait, without a limit.
constexpr double kKernelSeconds = 200e-6;
constexpr double kMostKernels = 256;

constexpr uint32_t kFirstRounds = 256;
constexpr uint32_t kMostRounds = uint32_t{1} << 31;
constexpr double kCalibrationSeconds = 2e-3;
constexpr int kCalibrations = 5;
// How often the collectives are asked for errors while the GPU is waited for.
constexpr milliseconds kLookInterval{10};

class GpuCompute : public Computer {
 public:
  GpuCompute(Runtime* runtime, int device, const ComputerOptions& options)
      : runtime_(runtime), bound_(runtime, device), options_(options) {
    kernel_seconds_ = std::max(kKernelSeconds, options.step_seconds / kMostKernels);
  }
  ~GpuCompute() override;

  // Streams and events. Without them nothing else may be called.
  Status Begin();

  Result<void*> Allocate(size_t bytes) override;
  Memory memory() const override { return Memory::kDevice; }
  Status Calibrate() override;
  void Correct(double factor) override { rounds_per_second_ /= factor; }
  Status Compute(double seconds, const std::function<void()>& progress) override;
  void* Stream(int communicator) const override {
    return streams_[static_cast<size_t>(communicator)];
  }
  Status BeforeStart(int communicator, size_t bucket) override;
  Status AfterStart(int communicator, size_t bucket) override;
  Status Join(size_t bucket) override;
  Status Finish(const std::function<Status()>& look) override;

 private:
  Status MakeStream(void** stream);
  Status MakeEvents(size_t count, std::vector<void*>* events);
  // `stream` goes on after everything that is in `other` now.
  Status Order(void* stream, void* other, void* event);
  Status Time(uint32_t rounds, double* seconds);

  Runtime* runtime_;
  const comm::gpu::Bound bound_;
  const ComputerOptions options_;
  double kernel_seconds_;
  double rounds_per_second_ = 1e6;
  bool idle_ = true;  // nothing of ours is on the GPU
  std::vector<void*> memory_;
  void* compute_ = nullptr;      // the stream that computes
  std::vector<void*> streams_;   // by communicator
  std::vector<void*> gates_;     // by bucket: the compute that it begins after
  std::vector<void*> ends_;      // by bucket: its collective
  std::vector<void*> drained_;   // by communicator: all of its collectives
  std::vector<void*> finished_;  // one: the whole step
};

GpuCompute::~GpuCompute() {
  // After an error something may still run that uses all this, perhaps for ever, and giving memory
  // back would wait for it: it stays for the life of the process.
  if (!idle_ || !bound_.status().ok()) return;
  for (const std::vector<void*>* events : {&gates_, &ends_, &drained_, &finished_}) {
    for (void* event : *events) runtime_->DestroyEvent(event);
  }
  for (void* stream : streams_) runtime_->DestroyStream(stream);
  if (compute_ != nullptr) runtime_->DestroyStream(compute_);
  for (void* memory : memory_) runtime_->Free(memory);
}

Status GpuCompute::MakeStream(void** stream) {
  ASSIGN_OR_RETURN(void* const made, runtime_->CreateStream());
  *stream = made;
  return {};
}

Status GpuCompute::MakeEvents(size_t count, std::vector<void*>* events) {
  for (size_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(void* const event, runtime_->CreateEvent());
    events->push_back(event);
  }
  return {};
}

Status GpuCompute::Begin() {
  if (!bound_.status().ok()) return bound_.status();
  Status status = MakeStream(&compute_);
  for (int i = 0; i < options_.communicators && status.ok(); ++i) {
    void* stream = nullptr;
    status = MakeStream(&stream);
    if (status.ok()) streams_.push_back(stream);
  }
  if (status.ok()) status = MakeEvents(options_.buckets, &gates_);
  if (status.ok()) status = MakeEvents(options_.buckets, &ends_);
  if (status.ok()) status = MakeEvents(streams_.size(), &drained_);
  if (status.ok()) status = MakeEvents(1, &finished_);
  return status;
}

Result<void*> GpuCompute::Allocate(size_t bytes) {
  Result<void*> memory = runtime_->Allocate(bytes);
  if (memory.ok()) memory_.push_back(memory.value());
  return memory;
}

Status GpuCompute::Order(void* stream, void* other, void* event) {
  idle_ = false;
  RETURN_IF_ERROR(runtime_->RecordEvent(event, other));
  return runtime_->WaitForEvent(stream, event);
}

Status GpuCompute::BeforeStart(int communicator, size_t bucket) {
  return Order(Stream(communicator), compute_, gates_[bucket]);
}

Status GpuCompute::AfterStart(int communicator, size_t bucket) {
  return runtime_->RecordEvent(ends_[bucket], Stream(communicator));
}

Status GpuCompute::Join(size_t bucket) { return runtime_->WaitForEvent(compute_, ends_[bucket]); }

Status GpuCompute::Compute(double seconds, const std::function<void()>& /*progress*/) {
  if (!(seconds > 0)) return {};
  idle_ = false;
  const double kernels = std::max(1.0, std::round(seconds / kernel_seconds_));
  const double rounds = std::clamp(std::round(seconds / kernels * rounds_per_second_), 1.0,
                                   static_cast<double>(kMostRounds));
  for (int i = 0; i < static_cast<int>(kernels); ++i) {
    RETURN_IF_ERROR(runtime_->Compute(static_cast<uint32_t>(rounds), compute_));
  }
  return {};
}

Status GpuCompute::Finish(const std::function<Status()>& look) {
  for (size_t i = 0; i < streams_.size(); ++i) {
    RETURN_IF_ERROR(Order(compute_, streams_[i], drained_[i]));
  }
  RETURN_IF_ERROR(runtime_->RecordEvent(finished_[0], compute_));
  const auto begin = steady_clock::now();
  auto next_look = begin + kLookInterval;
  while (true) {
    ASSIGN_OR_RETURN(const bool done, runtime_->EventDone(finished_[0]));
    if (done) break;
    const auto now = steady_clock::now();
    if (now - begin >= options_.limit) {
      return TimedOut(
          Format("the GPU has not finished the step after {:g} s", options_.limit.count()));
    }
    if (now >= next_look) {
      next_look = now + kLookInterval;
      RETURN_IF_ERROR(look());
    }
    std::this_thread::yield();
  }
  idle_ = true;
  return {};
}

Status GpuCompute::Time(uint32_t rounds, double* seconds) {
  const auto begin = steady_clock::now();
  idle_ = false;
  Status status = runtime_->Compute(rounds, compute_);
  if (status.ok()) status = Finish([] { return Status(); });
  *seconds = duration<double>(steady_clock::now() - begin).count();
  return status;
}

Status GpuCompute::Calibrate() {
  // The first launch compiles the kernel.
  double seconds = 0;
  RETURN_IF_ERROR(Time(1, &seconds));
  uint32_t rounds = kFirstRounds;
  while (true) {
    RETURN_IF_ERROR(Time(rounds, &seconds));
    if (seconds >= kCalibrationSeconds || rounds >= kMostRounds / 2) break;
    rounds *= 2;
  }
  std::vector<double> taken(kCalibrations);
  for (double& one : taken) {
    RETURN_IF_ERROR(Time(rounds, &one));
  }
  rounds_per_second_ = rounds / std::max(Median(taken), 1e-9);
  return {};
}

}  // namespace

Result<std::unique_ptr<Computer>> GpuComputer(Runtime* runtime, int device,
                                              const ComputerOptions& options) {
  auto computer = std::make_unique<GpuCompute>(runtime, device, options);
  if (Status status = computer->Begin(); !status.ok()) {
    return status.WithContext(Format("GPU {}", device));
  }
  return std::unique_ptr<Computer>(std::move(computer));
}

Result<std::unique_ptr<Computer>> MakeComputer(Group* group, const ComputerOptions& options) {
  if (group->simulated()) return SimulatedComputer(group);
  const auto gpus = comm::FactsOfBackend(group->backend()).gpus;
  if (gpus == nullptr) return CpuComputer(options);
  ASSIGN_OR_RETURN(comm::gpu::Runtime* const runtime, gpus());
  // The device the backend has taken.
  return GpuComputer(runtime, group->local_rank() % runtime->DeviceCount(), options);
}

}  // namespace diapason::measure
