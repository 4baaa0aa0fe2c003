#pragma once

#include <pthread.h>

namespace diapason {

// Holds a POSIX mutex for a scope. The plugin uses POSIX mutexes because they need no constructor
// to run when the library is loaded.
class MutexLock {
 public:
  explicit MutexLock(pthread_mutex_t* mutex) : mutex_(mutex) { pthread_mutex_lock(mutex_); }
  ~MutexLock() { pthread_mutex_unlock(mutex_); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  pthread_mutex_t* mutex_;
};

}  // namespace diapason
