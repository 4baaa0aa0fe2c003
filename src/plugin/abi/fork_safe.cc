#include "plugin/abi/fork_safe.h"

namespace diapason::plugin {
namespace {

constinit ForkSafeLocks g_locks;

void BeforeFork() {
  pthread_mutex_lock(&g_locks.v1);
  pthread_mutex_lock(&g_locks.journal);
  pthread_mutex_lock(&g_locks.store);
}

void AfterFork() {
  pthread_mutex_unlock(&g_locks.store);
  pthread_mutex_unlock(&g_locks.journal);
  pthread_mutex_unlock(&g_locks.v1);
}

__attribute__((constructor)) void Register() { pthread_atfork(BeforeFork, AfterFork, AfterFork); }

}  // namespace

ForkSafeLocks& Locks() noexcept { return g_locks; }

}  // namespace diapason::plugin
