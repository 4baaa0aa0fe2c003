/* Many threads, many communicators, one plugin: nobody may get another's answer, or half of one
 * pin and half of another. Made to be run under the thread sanitizer too, so nothing here orders
 * threads that the plugin itself does not order: the logger takes no lock, failures are counted
 * per thread, and checks use relaxed counters.
 *
 *   many_threads PLUGIN JOURNAL_CHECKER [THREADS COMMUNICATORS ROUNDS] */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "host.h"

enum { MOST_THREADS = 64, MOST_COMMS = 64, MOST_NODES = 32 };

static int g_threads = MOST_THREADS;
static int g_comms = MOST_COMMS; /* per thread */
static int g_rounds = 200;

/* Every shape has an answer of its own: an answer says whose it is. Rows use simple only, pins
 * never do. */
static const struct choice kPins[] = {{TREE, LL, 40}, {RING, LL128, 50}};
static const struct choice kV1Answer = {RING, SIMPLE, 60};

static struct choice answer_for(size_t nodes) {
  return (struct choice){nodes % 2 ? RING : TREE, SIMPLE, (int)nodes};
}

static const char* policy_rows(void) {
  static char rows[(MOST_NODES + 1) * 64];
  size_t length = 0;
  for (size_t nodes = 1; nodes <= MOST_NODES; ++nodes) {
    const struct choice answer = answer_for(nodes);
    length += (size_t)snprintf(rows + length, sizeof(rows) - length,
                               "allreduce,0,999,%s,simple,%d,%zu,-1,-1,-1\n",
                               answer.algorithm == RING ? "ring" : "tree", answer.channels, nodes);
  }
  snprintf(rows + length, sizeof(rows) - length, "allreduce,0,999,ring,simple,%d,-1,-1,-1,-1\n",
           kV1Answer.channels);
  return rows;
}

static void silent_log(int level, unsigned long flags, const char* file, int line,
                       const char* format, ...) {
  (void)level, (void)flags, (void)file, (void)line, (void)format;
}

static bool same(struct choice one, struct choice other) {
  return one.algorithm == other.algorithm && one.protocol == other.protocol &&
         one.channels == other.channels;
}

struct worker {
  pthread_t thread;
  int number;
  struct comm comms[MOST_COMMS];
  long asked;
  long by_policy;
  long by_pin;
  long wrong;
  struct choice first_wrong;
};

static struct worker g_workers[MOST_THREADS];
static pthread_barrier_t g_barrier;
static atomic_bool g_stop_pinning;

static size_t nodes_of(const struct worker* worker, int comm) {
  return 1 + (size_t)(worker->number + 5 * comm) % MOST_NODES;
}

static int api_of(int comm) { return 2 + comm % (TUNER_NEWEST_API - 1); }

static void open_comm(struct worker* worker, int i) {
  worker->comms[i] = comm_open(api_of(i), nodes_of(worker, i), 8 * nodes_of(worker, i));
}

/* Asks, and sorts the answer. An answer of nothing means that a pinned pair was not on offer. */
static void ask(struct worker* worker, const struct comm* comm, struct choice expected,
                bool only_policy, bool only_pins) {
  const struct question question = ordinary(ALLREDUCE, 500);
  const struct choice got = decide(comm, &question);
  ++worker->asked;
  const bool pinned = same(got, kPins[0]) || same(got, kPins[1]);
  if (same(got, expected) && !only_pins) {
    ++worker->by_policy;
  } else if (pinned && !only_policy) {
    ++worker->by_pin;
  } else {
    if (worker->wrong++ == 0) worker->first_wrong = got;
  }
}

static void ask_all(struct worker* worker, bool only_policy, bool only_pins) {
  for (int i = 0; i < g_comms; ++i) {
    ask(worker, &worker->comms[i], answer_for(nodes_of(worker, i)), only_policy, only_pins);
  }
}

/* v1 keeps one engine while anybody has a communicator: it comes and goes under all threads. */
static void use_v1(struct worker* worker) {
  struct comm comm = comm_open(1, nodes_of(worker, 0), 8);
  for (int i = 0; i < 20; ++i) ask(worker, &comm, kV1Answer, false, false);
  comm_close(&comm);
}

static void* work(void* argument) {
  struct worker* worker = argument;
  pthread_barrier_wait(&g_barrier); /* everybody creates at once */
  for (int i = 0; i < g_comms / 2; ++i) open_comm(worker, i);
  pthread_barrier_wait(&g_barrier);
  pthread_barrier_wait(&g_barrier); /* main has switched the journal on */
  for (int i = g_comms / 2; i < g_comms; ++i) {
    open_comm(worker, i);
    /* At once: the journal must still describe a communicator before its first decision. */
    ask(worker, &worker->comms[i], answer_for(nodes_of(worker, i)), false, false);
  }
  for (int round = 0; round < g_rounds; ++round) {
    ask_all(worker, false, false);
    if (round % 8 == worker->number % 8) {
      const int i = (worker->number + round) % g_comms;
      comm_close(&worker->comms[i]);
      open_comm(worker, i);
      use_v1(worker);
    }
  }
  pthread_barrier_wait(&g_barrier); /* main stops the pinning, and leaves one pin */
  pthread_barrier_wait(&g_barrier);
  ask_all(worker, false, true);
  pthread_barrier_wait(&g_barrier); /* main takes it away */
  pthread_barrier_wait(&g_barrier);
  ask_all(worker, true, false);
  for (int i = 0; i < g_comms; ++i) comm_close(&worker->comms[i]);
  return NULL;
}

static void* keep_pinning(void* argument) {
  (void)argument;
  for (unsigned i = 0; !atomic_load_explicit(&g_stop_pinning, memory_order_relaxed); ++i) {
    const struct choice* pin = &kPins[i % 2];
    host.pin(pin->algorithm, pin->protocol, pin->channels);
    if (i % 3 == 2) host.unpin();
    if (i % 50 == 0) usleep(100); /* after either pin, and after none */
  }
  return NULL;
}

static void check_worker(const struct worker* worker) {
  CHECK(worker->wrong == 0, "thread %d: %ld wrong answers of %ld, the first %d/%d %d channels",
        worker->number, worker->wrong, worker->asked, worker->first_wrong.algorithm,
        worker->first_wrong.protocol, worker->first_wrong.channels);
  /* The last two rounds are certain. */
  CHECK(worker->by_pin >= g_comms && worker->by_policy >= g_comms,
        "thread %d: %ld pinned answers, %ld of the policy", worker->number, worker->by_pin,
        worker->by_policy);
}

static void check_sums(void) {
  struct worker all = {.number = -1};
  for (int i = 0; i < g_threads; ++i) {
    check_worker(&g_workers[i]);
    all.asked += g_workers[i].asked;
    all.by_pin += g_workers[i].by_pin;
    all.by_policy += g_workers[i].by_policy;
  }
  say("%d threads x %d communicators: %ld questions, %ld by pin, %ld by policy", g_threads, g_comms,
      all.asked, all.by_pin, all.by_policy);
}

static void check_journal(const char* checker, const char* journal) {
  char command[1200];
  snprintf(command, sizeof(command), "'%s' --decisions 1000 '%s'", checker, journal);
  CHECK(system(command) == 0, "the journal is not in order");
}

int main(int count, char** arguments) {
  if (count != 3 && count != 6)
    give_up("usage: many_threads PLUGIN CHECKER [THREADS COMMS ROUNDS]");
  if (count == 6) {
    g_threads = atoi(arguments[3]);
    g_comms = atoi(arguments[4]);
    g_rounds = atoi(arguments[5]);
  }
  host_load(arguments[1]);
  case_begin("many threads");
  host.logger = silent_log;
  claimed_version = 22105;
  use_policy(policy_rows());
  env_set("DIAPASON_LL128", "1");
  const char* journal = temp_path("journal.jsonl");

  pthread_barrier_init(&g_barrier, NULL, (unsigned)g_threads + 1);
  for (int i = 0; i < g_threads; ++i) {
    g_workers[i].number = i;
    if (pthread_create(&g_workers[i].thread, NULL, work, &g_workers[i]) != 0) {
      give_up("cannot start thread %d", i);
    }
  }
  pthread_barrier_wait(&g_barrier);
  pthread_barrier_wait(&g_barrier);
  /* Nobody reads the environment now. */
  env_set("DIAPASON_JOURNAL", journal);
  env_set("DIAPASON_JOURNAL_LIMIT", "256MiB");
  pthread_t pinner;
  if (pthread_create(&pinner, NULL, keep_pinning, NULL) != 0) give_up("cannot start a thread");
  pthread_barrier_wait(&g_barrier);

  pthread_barrier_wait(&g_barrier);
  atomic_store(&g_stop_pinning, true);
  pthread_join(pinner, NULL);
  host.pin(kPins[0].algorithm, kPins[0].protocol, kPins[0].channels);
  pthread_barrier_wait(&g_barrier);
  pthread_barrier_wait(&g_barrier);
  unsigned long long asked = 0;
  unsigned long long applied = 0;
  host.pin_counts(&asked, &applied);
  CHECK(asked == (unsigned long long)g_threads * (unsigned)g_comms && applied == asked,
        "%llu asked and %llu applied of %d", asked, applied, g_threads * g_comms);
  host.unpin();
  pthread_barrier_wait(&g_barrier);
  for (int i = 0; i < g_threads; ++i) pthread_join(g_workers[i].thread, NULL);
  check_sums();
  check_journal(arguments[2], journal);
  return checks_report("many_threads");
}
