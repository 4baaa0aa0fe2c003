#include "journal/drain_thread.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <utility>

#include "base/file.h"
#include "base/mutex_lock.h"

namespace diapason::journal {
namespace {

constexpr auto kStopLimit = std::chrono::milliseconds(2000);

timespec Later(std::chrono::milliseconds delay) {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  const int64_t nanoseconds = time.tv_nsec + (delay.count() % 1000) * 1000000;
  time.tv_sec += delay.count() / 1000 + nanoseconds / 1000000000;
  time.tv_nsec = nanoseconds % 1000000000;
  return time;
}

}  // namespace

DrainThread::DrainThread(std::chrono::milliseconds interval, std::function<void(bool last)> drain)
    : interval_(interval), drain_(std::move(drain)), owner_(getpid()) {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&wake_, &monotonic);
  pthread_cond_init(&drained_, &monotonic);
  pthread_condattr_destroy(&monotonic);
}

DrainThread::~DrainThread() {
  Stop();
  if (!Mine()) return;
  pthread_cond_destroy(&wake_);
  pthread_cond_destroy(&drained_);
}

bool DrainThread::Mine() const { return getpid() == owner_; }

Status DrainThread::Start(const char* name) {
  name_ = name;
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&thread_, nullptr, RunThread, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return IoError(ErrnoText(error));
  running_ = true;
  return {};
}

bool DrainThread::Flush(std::chrono::milliseconds limit, const std::function<bool()>& reached) {
  if (!Mine() || !running_) return false;
  const timespec deadline = Later(limit);
  const MutexLock lock(&mutex_);
  while (!reached()) {
    flush_wanted_ = true;
    pthread_cond_signal(&wake_);
    if (pthread_cond_timedwait(&drained_, &mutex_, &deadline) != 0) return false;
  }
  return true;
}

void DrainThread::Stop() {
  if (!Mine() || !running_) return;
  running_ = false;
  const timespec deadline = Later(kStopLimit);
  bool finished = false;
  {
    const MutexLock lock(&mutex_);
    stop_wanted_ = true;
    pthread_cond_signal(&wake_);
    while (!finished_) {
      if (pthread_cond_timedwait(&drained_, &mutex_, &deadline) != 0) break;
    }
    finished = finished_;
  }
  if (finished) {
    pthread_join(thread_, nullptr);
  } else {
    pthread_detach(thread_);
  }
}

void* DrainThread::RunThread(void* self) {
  auto* thread = static_cast<DrainThread*>(self);
  pthread_setname_np(pthread_self(), thread->name_);
  thread->Run();
  return nullptr;
}

void DrainThread::Run() {
  bool last = false;
  while (!last) {
    {
      const MutexLock lock(&mutex_);
      if (!stop_wanted_ && !flush_wanted_) {
        const timespec deadline = Later(interval_);
        pthread_cond_timedwait(&wake_, &mutex_, &deadline);
      }
      last = stop_wanted_;
    }
    drain_(last);
    const MutexLock lock(&mutex_);
    flush_wanted_ = false;
    finished_ = last;
    pthread_cond_broadcast(&drained_);
  }
}

}  // namespace diapason::journal
