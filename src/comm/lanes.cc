#include "comm/lanes.h"

namespace diapason::comm {

Lanes::~Lanes() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Lanes::Work(size_t lane) {
  uint64_t last_round = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || (round_ != last_round && lane < count_); });
    if (stop_) return;
    last_round = round_;
    const std::function<Status(size_t)>& part = *part_;
    lock.unlock();
    Status status = part(lane);
    lock.lock();
    results_[lane] = std::move(status);
    if (--unfinished_ == 0) changed_.notify_all();
  }
}

Status Lanes::Run(size_t count, const std::function<Status(size_t)>& part) {
  if (count <= 1) return count == 0 ? Status() : part(0);
  {
    const std::lock_guard lock(mutex_);
    part_ = &part;
    count_ = count;
    unfinished_ = count - 1;
    results_.assign(count, Status());
    ++round_;
    while (threads_.size() + 1 < count) {
      const size_t lane = threads_.size() + 1;
      threads_.emplace_back([this, lane] { Work(lane); });
    }
  }
  changed_.notify_all();
  Status first = part(0);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return unfinished_ == 0; });
  results_[0] = std::move(first);
  for (const Status& status : results_) {
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace diapason::comm
