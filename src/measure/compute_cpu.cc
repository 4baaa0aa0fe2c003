#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/stats.h"
#include "base/text.h"
#include "measure/compute.h"

namespace diapason::measure {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

constexpr size_t kAlignment = 4096;
constexpr uint64_t kFirstRounds = 1000;
constexpr uint64_t kMostRounds = uint64_t{1} << 50;
constexpr double kCalibrationSeconds = 2e-3;
constexpr int kCalibrations = 5;
// Between two calls of `progress`.
constexpr double kSlice = 1e-4;

// Memory of the host.
class HostComputer : public Computer {
 public:
  Result<void*> Allocate(size_t bytes) override {
    const size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    HostMemory memory(whole < bytes ? nullptr : std::aligned_alloc(kAlignment, whole));
    if (memory == nullptr) return Unavailable(Format("no {} bytes of memory are left", bytes));
    // Zeros stay what they are under every reduction, and pages that were written are really there.
    std::memset(memory.get(), 0, whole);
    memory_.push_back(std::move(memory));
    return memory_.back().get();
  }
  Memory memory() const override { return Memory::kHost; }

 private:
  struct FreeMemory {
    void operator()(void* memory) const { std::free(memory); }
  };
  using HostMemory = std::unique_ptr<void, FreeMemory>;
  std::vector<HostMemory> memory_;
};

// So many rounds of 16 multiply-adds. The numbers stay ordinary ones for ever.
float Burn(uint64_t rounds) {
  float a = 1;
  float b = 2;
  float c = 3;
  float d = 4;
  for (uint64_t round = 0; round < rounds; ++round) {
    for (int i = 0; i < 4; ++i) {
      a = a * 0.5F + 0.5F;
      b = b * 0.5F + 0.5F;
      c = c * 0.5F + 0.5F;
      d = d * 0.5F + 0.5F;
    }
  }
  return a + b + c + d;
}

// The calling thread is one of the threads that compute.
class Cpu : public HostComputer {
 public:
  explicit Cpu(const ComputerOptions& options) : limit_(options.limit) {
    for (int i = 1; i < options.threads; ++i) {
      try {
        workers_.emplace_back([this] { Serve(); });
      } catch (const std::system_error&) {
        short_of_threads_ = true;
        return;
      }
    }
  }
  ~Cpu() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  Status Calibrate() override {
    if (short_of_threads_) return Unavailable("the system gives no more threads");
    uint64_t rounds = kFirstRounds;
    double seconds = 0;
    while (rounds < kMostRounds) {
      RETURN_IF_ERROR(Time(rounds, &seconds));
      if (seconds >= kCalibrationSeconds) break;
      rounds *= 2;
    }
    std::vector<double> taken(kCalibrations);
    for (double& one : taken) {
      RETURN_IF_ERROR(Time(rounds, &one));
    }
    rounds_per_second_ = static_cast<double>(rounds) / std::max(Median(taken), 1e-9);
    return {};
  }
  void Correct(double factor) override { rounds_per_second_ /= factor; }

  Status Compute(double seconds, const std::function<void()>& progress) override {
    return Run(Rounds(seconds), progress);
  }

 private:
  uint64_t Rounds(double seconds) const {
    const double rounds = seconds * rounds_per_second_;
    return static_cast<uint64_t>(std::clamp(rounds, 1.0, static_cast<double>(kMostRounds)));
  }

  Status Time(uint64_t rounds, double* seconds) {
    const auto begin = steady_clock::now();
    Status status = Run(rounds, {});
    *seconds = duration<double>(steady_clock::now() - begin).count();
    return status;
  }

  Status Run(uint64_t rounds, const std::function<void()>& progress) {
    if (!workers_.empty()) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        rounds_ = rounds;
        busy_ = workers_.size();
        ++job_;
      }
      wake_.notify_all();
    }
    if (progress) {
      const uint64_t slice = Rounds(kSlice);
      for (uint64_t left = rounds; left > 0; left -= std::min(left, slice)) {
        Keep(Burn(std::min(left, slice)));
        progress();
      }
    } else {
      Keep(Burn(rounds));
    }
    std::unique_lock<std::mutex> lock(mutex_);
    const auto until =
        steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(limit_);
    if (!done_.wait_until(lock, until, [this] { return busy_ == 0; })) {
      return TimedOut(Format("threads that compute are not done after {:g} s", limit_.count()));
    }
    return {};
  }

  void Serve() {
    uint64_t seen = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return stop_ || job_ != seen; });
      if (stop_) return;
      seen = job_;
      const uint64_t rounds = rounds_;
      lock.unlock();
      Keep(Burn(rounds));
      lock.lock();
      if (--busy_ == 0) done_.notify_all();
    }
  }

  // The compiler would remove a computation whose result is not read.
  void Keep(float value) { sink_.store(value, std::memory_order_relaxed); }

  const duration<double> limit_;
  double rounds_per_second_ = 1e6;
  bool short_of_threads_ = false;
  std::atomic<float> sink_{0};

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  uint64_t job_ = 0;
  uint64_t rounds_ = 0;
  size_t busy_ = 0;
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

class Simulated : public HostComputer {
 public:
  explicit Simulated(Group* group) : group_(group) {}

  // A simulated second is one.
  Status Calibrate() override { return {}; }
  void Correct(double /*factor*/) override {}
  Status Compute(double seconds, const std::function<void()>& /*progress*/) override {
    return group_->SimulateCompute(seconds);
  }

 private:
  Group* group_;
};

}  // namespace

std::unique_ptr<Computer> CpuComputer(const ComputerOptions& options) {
  return std::make_unique<Cpu>(options);
}

std::unique_ptr<Computer> SimulatedComputer(Group* group) {
  return std::make_unique<Simulated>(group);
}

}  // namespace diapason::measure
