#pragma once

#include <pthread.h>

namespace diapason::plugin {

// The plugin's process-wide locks. A fork waits until all are free, so that the child never
// inherits one that a thread it does not have would have to release. They are taken while
// communicators are created and destroyed, never for a decision. Order: as listed.
struct ForkSafeLocks {
  pthread_mutex_t v1 = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_t store = PTHREAD_MUTEX_INITIALIZER;  // where ranks agree
};
ForkSafeLocks& Locks() noexcept;

}  // namespace diapason::plugin
