#pragma once

#include <mutex>
#include <vector>

#include "plugin/profiler/observer.h"

namespace diapason::plugin {

// Writes down what it is told, for tests.
class FakeWitness : public Witness {
 public:
  struct Time {
    uint64_t tag;
    uint64_t start;
    uint64_t stop;
    friend bool operator==(const Time&, const Time&) = default;
  };

  void Called(const CallSeen& call) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex);
    calls.push_back(call);
  }
  void Launched(uint64_t group, void* stream) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex);
    stream_of_launch = stream;
    group_of_launch = group;
    ++launches;
  }
  void LaunchEnded() noexcept override { Add(&ended_launches); }
  uint64_t Ran(const RunSeen& run) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex);
    runs.push_back(run);
    return next_tag == 0 ? 0 : next_tag++;
  }
  void Timed(uint64_t tag, const GpuSpan& span) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex);
    times.push_back({tag, span.start_ns, span.stop_ns});
  }

  std::mutex mutex;
  int launches = 0;
  int ended_launches = 0;
  void* stream_of_launch = nullptr;
  uint64_t group_of_launch = 0;
  uint64_t next_tag = 1;  // 0: times are of no interest
  std::vector<CallSeen> calls;
  std::vector<RunSeen> runs;
  std::vector<Time> times;

 private:
  void Add(int* counter) noexcept {
    const std::lock_guard<std::mutex> lock(mutex);
    ++*counter;
  }
};

// Hands out the witnesses of a test, one communicator after the other.
class FakeWitnesses {
 public:
  FakeWitnesses() {
    Reset();
    Observer::UseWitnesses(&kSource);
  }
  ~FakeWitnesses() {
    Observer::UseWitnesses(nullptr);
    Reset();
  }
  FakeWitnesses(const FakeWitnesses&) = delete;
  FakeWitnesses& operator=(const FakeWitnesses&) = delete;

  static inline FakeWitness* next = nullptr;  // for the communicators created from now on
  static inline std::vector<ProfilerBirth> births;
  static inline std::vector<Witness*> detached;

 private:
  static void Reset() {
    next = nullptr;
    births.clear();
    detached.clear();
  }
  static Witness* Attach(const ProfilerBirth& birth) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    births.push_back(birth);
    return next;
  }
  static void Detach(Witness* witness) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    detached.push_back(witness);
  }
  static inline std::mutex mutex_;
  static constexpr WitnessSource kSource{Attach, Detach};
};

}  // namespace diapason::plugin
