// Preloaded into a rank: between attack_fail_from() and attack_fail_end() the calling thread's
// allocations are counted, and some of them fail; or, with attack_fail_others(), those of all other
// threads.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

static volatile int armed;
static int others;
static pthread_t whose;
static long seen, first_bad, bad_count;

void attack_fail_from(long first, long count) {
  seen = 0;
  first_bad = first;
  bad_count = count;
  whose = pthread_self();
  armed = 1;
}

void attack_fail_others(long first, long count) {
  others = 1;
  attack_fail_from(first, count);
}

long attack_fail_end(void) {
  armed = 0;
  return seen;
}

static int refused(void) {
  const int mine = pthread_equal(whose, pthread_self()) != 0;
  if (!armed || mine == others) return 0;
  const long number = __atomic_fetch_add(&seen, 1, __ATOMIC_RELAXED);
  if (first_bad < 0 || number < first_bad || number - first_bad >= bad_count) return 0;
  errno = ENOMEM;
  return 1;
}

// glibc's own entries: nothing has to be looked up, which would allocate.
extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* old, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) { return refused() ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return refused() ? NULL : __libc_calloc(count, size); }
void* realloc(void* old, size_t size) { return refused() ? NULL : __libc_realloc(old, size); }
void* aligned_alloc(size_t alignment, size_t size) {
  return refused() ? NULL : __libc_memalign(alignment, size);
}
