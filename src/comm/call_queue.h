#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "base/status.h"
#include "comm/communicator.h"

namespace diapason::comm {

// Makes the blocking calls of a library asynchronous: a thread runs them one after another, in
// submission order, which is the same on every rank. The thread starts with the first call. One
// thread submits.
class CallQueue {
 public:
  CallQueue() = default;
  // Runs the remaining calls, then ends.
  ~CallQueue();
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  std::unique_ptr<PendingCall> Add(std::function<Status()> call);
  // True: no call is running or waiting; the caller may run its next call itself.
  bool Idle();

 private:
  struct Entry;
  class QueuedCall;
  void Work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Entry>> waiting_;
  bool running_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace diapason::comm
