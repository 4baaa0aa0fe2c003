/* The profiler half under many threads and many communicators: events, questions, ends and late
 * events meet; nothing may be left of a communicator.
 *
 *   profiler_crowd PLUGIN [ROUNDS] */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "harness.h"
#include "profiler_host.h"

enum { THREADS = 8, COMMS = 4, SLACK_BYTES = 4096 };
static int g_calls; /* of every communicator in the crowd */
/* The journal keeps a byte of every communicator, in arrays that double. */
enum { JOURNAL_BYTES_PER_COMMUNICATOR = 5 };

static void silent_log(int level, unsigned long flags, const char* file, int line,
                       const char* format, ...) {
  (void)level, (void)flags, (void)file, (void)line, (void)format;
}

struct shared {
  atomic_uintptr_t context;
  atomic_uintptr_t run;
};
/* The newest context and run of every thread, for everybody else to trip over. */
static struct shared g_shared[THREADS];

struct worker {
  pthread_t thread;
  int number;
};

static void one_call(struct watched* watched, struct shared* mine, uint64_t stamp) {
  void* group_api = start_group_api(watched, false);
  void* parent = start_coll_api(watched, "AllReduce", 1024, "ncclFloat32", false);
  const struct question question = ordinary(ALLREDUCE, 4096);
  decide(&watched->tuner, &question);
  start_launch(watched);
  void* group = start_group(watched);
  void* run = start_coll(watched, has_calls(watched->api) ? parent : group, &kRun);
  atomic_store_explicit(&mine->run, (uintptr_t)run, memory_order_relaxed);
  stop(watched->api, run);
  stop(watched->api, group_api);
  for (int channel = 0; channel < 2; ++channel) {
    stop_kernel(watched->api, start_kernel(watched->api, watched->context, run, channel, stamp),
                stamp + 10);
  }
}

/* Events of somebody else's communicator, which may have ended. */
static void meddle(const struct worker* worker, int i) {
  const struct shared* other = &g_shared[(worker->number + 1 + i % (THREADS - 1)) % THREADS];
  void* context = (void*)atomic_load_explicit(&other->context, memory_order_relaxed);
  void* run = (void*)atomic_load_explicit(&other->run, memory_order_relaxed);
  void* handle = start_kernel(7, context, run, i % 3, (uint64_t)i + 1);
  stop_kernel(7, handle, (uint64_t)i + 2);
  start_nonsense(7, context, run, KERNEL_LAUNCH);
}

static void* work(void* argument) {
  const struct worker* worker = argument;
  struct shared* mine = &g_shared[worker->number];
  /* The first version of each pair has no calls, the other has. One process speaks one version in
   * real life; the mask's users must not mind. */
  const int api = worker->number % 2 ? 7 : 4;
  for (int round = 0; round < COMMS; ++round) {
    struct watched watched = watched_open(api, 8, worker->number);
    atomic_store_explicit(&mine->context, (uintptr_t)watched.context, memory_order_relaxed);
    for (int i = 0; i < g_calls; ++i) {
      one_call(&watched, mine, 1 + 100 * (uint64_t)i);
      meddle(worker, i);
    }
    watched_close(&watched);
  }
  return NULL;
}

static void crowd(void) {
  struct worker workers[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    workers[i].number = i;
    if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
      give_up("cannot start thread %d", i);
    }
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(workers[i].thread, NULL);
  CHECK(event_mask() == 0, "0x%x is still asked for", event_mask());
}

static void come_and_go(int api, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    struct watched watched = {.api = api, .ranks = 8};
    watched.context = profiler_open(api, (uint64_t)i, 8, 0);
    void* parent = start_coll_api(&watched, "AllReduce", 16, "ncclFloat32", false);
    start_kernel(api, watched.context, start_coll(&watched, parent, &kRun), 0, 5);
    profiler_close(api, watched.context);
  }
}

static size_t bytes_in_use(void) {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

static void no_growth(int api, int rounds, long allowed) {
  come_and_go(api, rounds / 10);
  const size_t early = bytes_in_use();
  come_and_go(api, rounds - rounds / 10);
  const long grown = (long)bytes_in_use() - (long)early;
  say("v%d, %d communicators: %ld bytes more than after a tenth", api, rounds, grown);
  CHECK(grown <= allowed, "v%d grew by %ld bytes, allowed are %ld", api, grown, allowed);
}

int main(int count, char** arguments) {
  if (count != 2 && count != 3) give_up("usage: profiler_crowd PLUGIN [ROUNDS]");
  const int rounds = count == 3 ? atoi(arguments[2]) : 10000;
  g_calls = rounds / 33;
  host_load(arguments[1]);
  profiler_load();

  case_begin("many threads, with a journal");
  host.logger = silent_log;
  env_set("DIAPASON_JOURNAL", temp_path("crowd.jsonl"));
  env_set("DIAPASON_JOURNAL_TIMES", "1");
  crowd();
  case_begin("many threads, nobody interested");
  crowd();

  case_begin("come and go, nobody interested");
  no_growth(1, rounds, SLACK_BYTES);
  no_growth(7, rounds, SLACK_BYTES);
  case_begin("come and go, with a journal");
  env_set("DIAPASON_JOURNAL", temp_path("growth.jsonl"));
  no_growth(4, rounds, SLACK_BYTES + (long)JOURNAL_BYTES_PER_COMMUNICATOR * rounds);
  no_growth(7, rounds, SLACK_BYTES + (long)JOURNAL_BYTES_PER_COMMUNICATOR * rounds);
  return checks_report("profiler_crowd");
}
