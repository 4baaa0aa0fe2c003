#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <chrono>
#include <functional>

#include "base/status.h"

namespace diapason::journal {

// The thread that moves what the program's threads have added, without waiting, to a file. It
// blocks all signals. After fork() the child has no such thread: Flush and Stop do nothing there.
class DrainThread {
 public:
  // `drain` is called on the thread, every `interval`, when a flush is wanted, and with `last` when
  // it is to end; it must not throw. It takes mutex() to update what Flush waits for.
  DrainThread(std::chrono::milliseconds interval, std::function<void(bool last)> drain);
  ~DrainThread();
  DrainThread(const DrainThread&) = delete;
  DrainThread& operator=(const DrainThread&) = delete;

  // Called once; `name` is that of the thread, at most 15 letters.
  Status Start(const char* name);
  // Drains until `reached`, which is called with the mutex held; false: not within the limit, or
  // there is no thread.
  bool Flush(std::chrono::milliseconds limit, const std::function<bool()>& reached);
  // Drains once more and ends the thread. Waits at most two seconds: a hanging disk must not block
  // the end of the process.
  void Stop();

  bool running() const { return running_; }
  // Whether this object belongs to the calling process, and not to its parent before a fork. In a
  // child the mutex may be held by a thread that does not exist there.
  bool Mine() const;
  pthread_mutex_t* mutex() { return &mutex_; }

 private:
  static void* RunThread(void* self);
  void Run();

  const std::chrono::milliseconds interval_;
  const std::function<void(bool last)> drain_;
  const pid_t owner_;
  const char* name_ = "";
  pthread_t thread_{};
  bool running_ = false;
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake_;  // against the monotonic clock
  pthread_cond_t drained_;
  // Guarded by mutex_.
  bool flush_wanted_ = false;
  bool stop_wanted_ = false;
  bool finished_ = false;  // the last drain has ended
};

}  // namespace diapason::journal
