#pragma once

#include <pthread.h>

namespace diapason::plugin {

// The plugin's process-wide locks. A fork takes all of them first, so that the child never inherits
// a lock held by a thread that it does not have. The plugin takes them while communicators are
// created and destroyed, never for a decision. Lock order: as listed.
struct ForkSafeLocks {
  pthread_mutex_t v1 = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_t store = PTHREAD_MUTEX_INITIALIZER;  // where ranks agree
};
ForkSafeLocks& Locks() noexcept;

}  // namespace diapason::plugin
