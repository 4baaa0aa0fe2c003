#include "comm/call_queue.h"

namespace diapason::comm {

struct CallQueue::Entry {
  std::function<Status()> call;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  double seconds = -1;
  Status status;
};

class CallQueue::QueuedCall : public PendingCall {
 public:
  explicit QueuedCall(std::shared_ptr<Entry> entry) : entry_(std::move(entry)) {}

  Status Wait(Deadline deadline) override {
    std::unique_lock lock(entry_->mutex);
    if (!entry_->changed.wait_until(lock, deadline, [this] { return entry_->done; })) {
      return TimedOut("the call has not finished in time");
    }
    return entry_->status;
  }

  bool Done() override {
    const std::lock_guard lock(entry_->mutex);
    return entry_->done;
  }

  double Seconds() const override {
    const std::lock_guard lock(entry_->mutex);
    return entry_->seconds;
  }

 private:
  std::shared_ptr<Entry> entry_;
};

CallQueue::~CallQueue() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::unique_ptr<PendingCall> CallQueue::Add(std::function<Status()> call) {
  auto entry = std::make_shared<Entry>();
  entry->call = std::move(call);
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(entry);
    if (!thread_.joinable()) thread_ = std::thread([this] { Work(); });
  }
  changed_.notify_all();
  return std::make_unique<QueuedCall>(std::move(entry));
}

bool CallQueue::Idle() {
  const std::lock_guard lock(mutex_);
  return !running_ && waiting_.empty();
}

void CallQueue::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::shared_ptr<Entry> entry = waiting_.front();
    waiting_.pop_front();
    running_ = true;
    lock.unlock();
    const auto start = std::chrono::steady_clock::now();
    Status status = entry->call();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    lock.lock();
    // Set to idle before the call shows as done, so that the next one may run directly.
    running_ = false;
    const std::lock_guard done(entry->mutex);
    entry->status = std::move(status);
    entry->seconds = spent.count();
    entry->done = true;
    entry->changed.notify_all();
  }
}

}  // namespace diapason::comm
