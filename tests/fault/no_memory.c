/* Memory runs out in the middle of everything: the plugin must neither crash nor hang nor report an
 * error, and must work again once there is memory. Also proves that the exception unwinder linked
 * into the plugin works in a process that has another one.
 *
 *   no_memory PLUGIN CHAINED_TUNER
 *
 * This program defines malloc itself: the Nth call fails, or the Nth and all after it. Every N runs
 * in a child of its own, and the whole life of a communicator is inside the window. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "harness.h"
#include "host.h"

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

/* Of all threads together: the journal's own thread runs out of memory as well. */
static atomic_long g_calls;
static atomic_long g_fail_at; /* 0: never */
static atomic_bool g_fail_on;

static bool fails(void) {
  const long call = atomic_fetch_add(&g_calls, 1) + 1;
  const long at = atomic_load(&g_fail_at);
  if (at == 0 || call < at || (call > at && !atomic_load(&g_fail_on))) return false;
  errno = ENOMEM;
  return true;
}

void* malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return fails() ? NULL : __libc_calloc(count, size); }
void* realloc(void* memory, size_t size) { return fails() ? NULL : __libc_realloc(memory, size); }
void* aligned_alloc(size_t alignment, size_t size) {
  return fails() ? NULL : __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
  *memory = fails() ? NULL : __libc_memalign(alignment, size);
  return *memory == NULL ? ENOMEM : 0;
}

/* One way a communicator lives. */
struct life {
  const char* what;
  int api;
  bool journal;
  bool chain;
};
static const struct life kLives[] = {
    {"v5", 5, false, false},
    {"v1", 1, false, false},
    {"v6", 6, false, false},
    {"v5 with a journal", 5, true, false},
    {"v6 with a chained tuner", 6, false, true},
    {"v7 with a chained tuner", 7, false, true},
};

/* They tend to be the same one. */
enum { ENOUGH_FAILURES = 6 };

/* The status with which the loader ends a process. */
enum { C_LIBRARY_GAVE_UP = 127 };

static const char* g_chain;

static void set_up(const struct life* life) {
  use_policy(
      "# diapason: origin=\"no memory\" fingerprint=\"8x Other GPU\"\n"
      "allreduce,0,999,ring,ll,2,-1,-1,-1,-1\n"
      "allreduce,1000,1999,tree,simple,-1,1,8,2,-1\n"
      "allgather,0,4294967296,ring,simple,4,-1,-1,-1,1\n");
  env_set("DIAPASON_FINGERPRINT", "4x This GPU");
  env_set("DIAPASON_POLCY", "a typo, for one more warning");
  if (life->journal) env_set("DIAPASON_JOURNAL", temp_path("journal-%p.jsonl"));
  if (life->chain) env_set("DIAPASON_CHAIN", g_chain);
}

/* Everything the library does with a communicator. The answer is the policy's or none at all. */
static struct choice live(const struct life* life) {
  struct comm comm = comm_open(life->api, 1, 8);
  const struct question question = ordinary(ALLREDUCE, 500);
  const struct choice choice = decide(&comm, &question);
  comm_close(&comm);
  return choice;
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct attempt {
  const struct life* life;
  long fail_at;
  bool fail_on;
  long* calls; /* shared with the parent */
};

/* The C library allocates a thread's copy of a loaded library's variables when they are first
 * touched, and ends the process when it cannot ("cannot allocate memory for thread-local data").
 * The first exception of a thread touches some. That is not what is tried here, so before memory
 * runs out for good this thread meets one exception. */
static void meet_an_exception(const struct life* life) {
  const struct life plain = {life->what, life->api, false, false};
  char* journal = getenv("DIAPASON_JOURNAL");
  char* kept = journal != NULL ? strdup(journal) : NULL;
  if (kept != NULL) env_set("DIAPASON_JOURNAL", NULL);
  atomic_store(&g_fail_on, false);
  atomic_store(&g_calls, 0);
  atomic_store(&g_fail_at, 20);
  live(&plain);
  atomic_store(&g_fail_at, 0);
  if (kept != NULL) env_set("DIAPASON_JOURNAL", kept);
  free(kept);
}

static void attempt(void* argument) {
  const struct attempt* attempt = argument;
  const int failures_before = checks_failed();
  if (attempt->fail_on) meet_an_exception(attempt->life);
  atomic_store(&g_calls, 0);
  atomic_store(&g_fail_on, attempt->fail_on);
  atomic_store(&g_fail_at, attempt->fail_at);
  const struct choice got = live(attempt->life);
  atomic_store(&g_fail_at, 0);
  *attempt->calls = atomic_load(&g_calls);
  const bool chained = attempt->life->chain && got.channels == 3;
  CHECK((got.algorithm == RING && got.protocol == LL) ||
            (got.algorithm == UNDEF && got.protocol == UNDEF && got.channels == 0) || chained,
        "half an answer: %d/%d %d channels", got.algorithm, got.protocol, got.channels);
  /* There is memory again: it answers as it should, and does not wait for what was lost. */
  const double start = seconds_now();
  const struct choice again = live(attempt->life);
  CHECK(again.algorithm == RING && again.protocol == LL, "afterwards: %d/%d", again.algorithm,
        again.protocol);
  CHECK(seconds_now() - start < 60.0, "afterwards a communicator takes %.1f s",
        seconds_now() - start);
  /* Runs what the plugin does when a process ends. */
  exit(checks_failed() == failures_before ? EXIT_SUCCESS : EXIT_FAILURE);
}

static long run(const struct life* life, long fail_at, bool fail_on, long* calls) {
  char what[96];
  struct attempt one = {life, fail_at, fail_on, calls};
  snprintf(what, sizeof(what), "%s, allocation %ld%s fails", life->what, fail_at,
           fail_on ? " and later" : "");
  *calls = 0;
  /* The journal's thread is new, and what meet_an_exception does for this one cannot be done for
   * it: there the C library's own end of the process is let pass. */
  const int allowed = life->journal && fail_on ? C_LIBRARY_GAVE_UP : EXIT_SUCCESS;
  child_ends(what, 10, attempt, &one, allowed);
  return *calls;
}

/* Every allocation of a life in turn. */
static void try_all(const struct life* life, long needed, bool fail_on, long* calls) {
  const int failures_before = checks_failed();
  for (long n = 1; n <= needed + 2; ++n) {
    run(life, n, fail_on, calls);
    if (checks_failed() - failures_before < ENOUGH_FAILURES) continue;
    say("%s: what follows is not tried", life->what);
    return;
  }
}

int main(int count, char** arguments) {
  if (count != 3) give_up("usage: no_memory PLUGIN CHAINED_TUNER");
  g_chain = arguments[2];
  host_load(arguments[1]);
  long* calls =
      mmap(NULL, sizeof(*calls), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (calls == MAP_FAILED) give_up("mmap: %s", strerror(errno));
  for (size_t i = 0; i < sizeof(kLives) / sizeof(kLives[0]); ++i) {
    const struct life* life = &kLives[i];
    case_begin("%s", life->what);
    set_up(life);
    const long needed = run(life, 0, false, calls);
    CHECK(needed > 50, "%ld allocations: they are not seen", needed);
    say("%s: %ld allocations", life->what, needed);
    try_all(life, needed, false, calls);
    try_all(life, needed, true, calls);
  }
  return checks_report("no_memory");
}
