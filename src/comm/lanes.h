#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/status.h"

namespace diapason::comm {

// Runs the parts of one call concurrently: part 0 on the calling thread, the others on threads that
// are kept for the next call.
class Lanes {
 public:
  Lanes() = default;
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  // Calls part(0) to part(count - 1) concurrently and returns when all are done, with the first
  // failure in index order.
  Status Run(size_t count, const std::function<Status(size_t)>& part);

 private:
  void Work(size_t lane);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::thread> threads_;
  const std::function<Status(size_t)>* part_ = nullptr;
  uint64_t round_ = 0;
  size_t count_ = 0;
  size_t unfinished_ = 0;
  std::vector<Status> results_;
  bool stop_ = false;
};

}  // namespace diapason::comm
