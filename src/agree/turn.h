#pragma once

#include <condition_variable>
#include <mutex>

#include "agree/store.h"

namespace diapason::agree {

// A mutex with a deadline. (std::timed_mutex would do, but the thread sanitizer of g++ 12 does not
// know the call it uses.)
class Turn {
 public:
  // Held while in scope; not held if the deadline came first.
  class Holder {
   public:
    Holder(Turn* turn, Deadline deadline) : turn_(turn), held_(turn->Take(deadline)) {}
    ~Holder() {
      if (held_) turn_->Give();
    }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;
    bool held() const { return held_; }

   private:
    Turn* turn_;
    bool held_;
  };

 private:
  bool Take(Deadline deadline) {
    std::unique_lock lock(mutex_);
    if (!free_.wait_until(lock, deadline, [this] { return !taken_; })) return false;
    taken_ = true;
    return true;
  }
  void Give() {
    const std::lock_guard lock(mutex_);
    taken_ = false;
    free_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable free_;
  bool taken_ = false;
};

}  // namespace diapason::agree
