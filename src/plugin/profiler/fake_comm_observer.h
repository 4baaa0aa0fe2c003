#pragma once

#include <mutex>
#include <vector>

#include "plugin/profiler/observer.h"

namespace diapason::plugin {

// Records what it is told, for tests.
class FakeCommObserver : public CommObserver {
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
  uint64_t RecordActual(const RunSeen& run) noexcept override {
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
  uint64_t next_tag = 1;  // 0: times are not wanted
  std::vector<CallSeen> calls;
  std::vector<RunSeen> runs;
  std::vector<Time> times;

 private:
  void Add(int* counter) noexcept {
    const std::lock_guard<std::mutex> lock(mutex);
    ++*counter;
  }
};

// Supplies a test's comm observers, one per communicator.
class FakeCommObservers {
 public:
  FakeCommObservers() {
    Reset();
    ProfilerObserver::UseCommObservers(&kSource);
  }
  ~FakeCommObservers() {
    ProfilerObserver::UseCommObservers(nullptr);
    Reset();
  }
  FakeCommObservers(const FakeCommObservers&) = delete;
  FakeCommObservers& operator=(const FakeCommObservers&) = delete;

  static inline FakeCommObserver* next = nullptr;  // for the communicators created from now on
  static inline std::vector<ProfilerInit> inits;
  static inline std::vector<CommObserver*> detached;

 private:
  static void Reset() {
    next = nullptr;
    inits.clear();
    detached.clear();
  }
  static CommObserver* Attach(const ProfilerInit& init) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    inits.push_back(init);
    return next;
  }
  static void Detach(CommObserver* comm_observer) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    detached.push_back(comm_observer);
  }
  static inline std::mutex mutex_;
  static constexpr CommObserverSource kSource{Attach, Detach};
};

}  // namespace diapason::plugin
