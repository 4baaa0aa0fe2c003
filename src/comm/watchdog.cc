#include "comm/watchdog.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace diapason::comm {

using std::chrono::steady_clock;

namespace {

// A memory barrier on every thread of the process, so that the frequent side needs none.
bool Membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

void BarrierForAllThreads() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  static const bool registered = Membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
  if (registered && Membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  // If the kernel lacks it: stores of another processor become visible within microseconds, far
  // less than this.
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

}  // namespace

// One thread for all groups of the process, as long as there are any.
class Watchdog {
 public:
  static Watchdog& Get() {
    // Never destroyed: a group in a static variable may outlive everything else.
    static auto* const watchdog = new Watchdog;
    return *watchdog;
  }

  void Add(CallWatch* watch) {
    const std::lock_guard lifecycle(lifecycle_);
    bool first = false;
    {
      const std::lock_guard lock(mutex_);
      first = watches_.empty();
      watches_.push_back(watch);
    }
    if (first) thread_ = std::thread([this] { Look(); });
  }

  // Waits until the watchdog has checked every group once.
  bool Settled(CallWatch* watch) {
    const std::lock_guard lock(mutex_);
    return !watch->expired_call_;
  }

  void Remove(CallWatch* watch) {
    const std::lock_guard lifecycle(lifecycle_);
    bool last = false;
    {
      const std::lock_guard lock(mutex_);
      std::erase(watches_, watch);
      last = watches_.empty();
    }
    if (last) {
      wake_.notify_all();
      thread_.join();
    }
  }

 private:
  void Look() {
    std::unique_lock lock(mutex_);
    while (!watches_.empty()) {
      const auto now = steady_clock::now();
      for (CallWatch* watch : watches_) {
        const uint64_t number = watch->number_.load(std::memory_order_acquire);
        if (number == 0 || watch->expired_call_) continue;
        if (number != watch->seen_) {
          watch->seen_ = number;
          watch->since_ = now;
          continue;
        }
        const std::chrono::milliseconds limit(watch->limit_.load(std::memory_order_relaxed));
        if (now - watch->since_ < limit + CallWatch::kGrace) continue;
        // From here on the end of the call waits for the decision. The barrier guarantees that
        // either its store of the end is visible below, or it sees `expiring_`.
        watch->expiring_.store(true, std::memory_order_relaxed);
        BarrierForAllThreads();
        if (watch->number_.load(std::memory_order_acquire) == number) {
          watch->expired_call_ = true;
          watch->expired_();
        } else {
          watch->expiring_.store(false, std::memory_order_relaxed);
        }
      }
      wake_.wait_for(lock, std::chrono::milliseconds(250));
    }
  }

  std::mutex lifecycle_;  // one start or end of the thread at a time
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<CallWatch*> watches_;
  std::thread thread_;
};

CallWatch::CallWatch(std::function<void()> expired) : expired_(std::move(expired)) {
  Watchdog::Get().Add(this);
}

bool CallWatch::Settle() { return Watchdog::Get().Settled(this); }

CallWatch::~CallWatch() { Watchdog::Get().Remove(this); }

}  // namespace diapason::comm
