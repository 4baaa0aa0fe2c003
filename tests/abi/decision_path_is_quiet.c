/* Proves that a decision allocates nothing, takes no lock and makes no system call.
 *
 * This program defines malloc and the locks itself; the plugin, loaded later, gets these. They
 * count while the calling thread is deciding. For system calls a forked child forbids itself all
 * of them, decides again, and lives only if there was none.
 *
 *   decision_path_is_quiet PLUGIN */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "host.h"

/* The counting functions. glibc's own are reachable under these names without dlsym, which would
 * itself allocate. */

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* memory);

static _Thread_local bool t_counting;
static _Thread_local unsigned t_allocations;
static _Thread_local unsigned t_locks;

static void count_allocation(void) { t_allocations += t_counting; }

void* malloc(size_t size) {
  count_allocation();
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  count_allocation();
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
  count_allocation();
  return __libc_realloc(memory, size);
}
void free(void* memory) {
  count_allocation();
  __libc_free(memory);
}
void* aligned_alloc(size_t alignment, size_t size) {
  count_allocation();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
  count_allocation();
  *memory = __libc_memalign(alignment, size);
  return *memory == NULL ? ENOMEM : 0;
}

/* Looked up in main, before anything counts. */
static int (*real_mutex_lock)(pthread_mutex_t*);
static int (*real_mutex_trylock)(pthread_mutex_t*);
static int (*real_cond_signal)(pthread_cond_t*);
static int (*real_cond_broadcast)(pthread_cond_t*);

static void count_lock(void) { t_locks += t_counting; }

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  count_lock();
  if (real_mutex_lock == NULL) *(void**)&real_mutex_lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
  return real_mutex_lock(mutex);
}
int pthread_mutex_trylock(pthread_mutex_t* mutex) {
  count_lock();
  return real_mutex_trylock(mutex);
}
int pthread_cond_signal(pthread_cond_t* condition) {
  count_lock();
  return real_cond_signal(condition);
}
int pthread_cond_broadcast(pthread_cond_t* condition) {
  count_lock();
  return real_cond_broadcast(condition);
}

static void find_real_functions(void) {
  *(void**)&real_mutex_lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
  *(void**)&real_mutex_trylock = dlsym(RTLD_NEXT, "pthread_mutex_trylock");
  *(void**)&real_cond_signal = dlsym(RTLD_NEXT, "pthread_cond_signal");
  *(void**)&real_cond_broadcast = dlsym(RTLD_NEXT, "pthread_cond_broadcast");
}

/* The decisions: every kind of answer, by size; see kKinds. */

#define ROWS                                                                    \
  "allreduce,0,99,tree,ll,2,-1,-1,-1,-1\n"        /* a pair and a count */      \
  "allreduce,100,199,ring,-1,-1,-1,-1,-1,-1\n"    /* half a pair */             \
  "allreduce,200,299,pat,simple,3,-1,-1,-1,-1\n"  /* never on offer */          \
  "allreduce,300,399,ring,simple,4,1,8,2,-1\n"    /* for a shape and two ops */ \
  "allreduce,400,499,tree,simple,-1,-1,-1,-1,1\n" /* for registered buffers */  \
  "allreduce,500,599,-1,-1,5,-1,-1,-1,-1\n"       /* a count alone */           \
  "allreduce,600,699,collnet_direct,simple,6,-1,-1,-1,-1\n"                     \
  "allreduce,700,799,ring,ll128,-1,-1,-1,-1,-1\n" /* not told by v1 and v2 */   \
  "broadcast,0,4294967296,ring,ll,-1,-1,-1,-1,-1\n"

enum { SIZE_STEPS = 10, DECISIONS = 100000 };

/* Asks one question after the other; the answers differ from step to step. Makes no call but the
 * plugin's. The sum keeps the compiler from leaving anything out. */
static int decide_many(const struct comm* comms, int comm_count, int decisions) {
  int sum = 0;
  for (int i = 0; i < decisions; ++i) {
    const struct comm* comm = &comms[i % comm_count];
    const int step = i / comm_count;
    struct question question =
        ordinary(step % 7 == 6 ? BROADCAST : ALLREDUCE, (size_t)(step % SIZE_STEPS) * 100 + 50);
    question.pipe_ops = 1 + step % 3;
    question.reg_buff = step % 2;
    if (step % 11 == 10) question.collective = 11; /* a number nobody knows */
    int channels = 0;
    if (comm->api <= 2) {
      int algorithm = UNDEF;
      int protocol = UNDEF;
      sum += ask_pair(comm, &question, &algorithm, &protocol, &channels) + algorithm + protocol;
    } else {
      struct table table;
      table_typical(&table, question.collective);
      sum += ask_table(comm, &question, &table, &channels) + (int)table.cells[i % 21];
    }
    sum += channels;
  }
  return sum;
}

static volatile int g_sum;

static void expect_no_counted_calls(const char* what, const struct comm* comms, int comm_count) {
  t_allocations = t_locks = 0;
  t_counting = true;
  g_sum = decide_many(comms, comm_count, DECISIONS);
  t_counting = false;
  CHECK(t_allocations == 0, "%s: %u allocations in %d decisions", what, t_allocations, DECISIONS);
  CHECK(t_locks == 0, "%s: %u locks in %d decisions", what, t_locks, DECISIONS);
}

/* The counters must count: creating a communicator allocates, and with a journal it locks. */
static void expect_counters_to_work(void) {
  t_allocations = t_locks = 0;
  t_counting = true;
  struct comm comm = comm_open(5, 1, 8);
  t_counting = false;
  CHECK(t_allocations > 10, "an init with %u allocations: they are not seen", t_allocations);
  CHECK(t_locks > 0, "an init with %u locks: they are not seen", t_locks);
  comm_close(&comm);
}

/* From here on every system call but exit ends the process; clock_gettime, which is normally none,
 * can be allowed. False when the kernel has no such filters. */
static bool forbid_system_calls(bool clock_allowed) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, clock_allowed ? SYS_clock_gettime : SYS_exit, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

enum { NO_FILTER = 42 };

/* Decides in a child that may not make a system call; returns how the child ended. */
static int decide_in_a_cage(const struct comm* comms, int comm_count, bool journal, bool escape) {
  const pid_t child = fork();
  if (child < 0) give_up("cannot fork: %s", strerror(errno));
  if (child == 0) {
    if (!forbid_system_calls(journal)) _exit(NO_FILTER);
    g_sum = decide_many(comms, comm_count, DECISIONS);
    if (escape) g_sum += (int)syscall(SYS_getppid);
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

static bool g_skipped;

static void expect_no_system_calls(const char* what, const struct comm* comms, int comm_count,
                                   bool journal) {
  const int status = decide_in_a_cage(comms, comm_count, journal, false);
  if (WIFEXITED(status) && WEXITSTATUS(status) == NO_FILTER) {
    if (!g_skipped) say("SKIP: system calls: this kernel has no seccomp filters");
    g_skipped = true;
    return;
  }
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: %s %d", what,
        WIFSIGNALED(status) ? "a system call: killed by signal" : "exit status",
        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  const int escaped = decide_in_a_cage(comms, comm_count, journal, true);
  CHECK(WIFSIGNALED(escaped) && WTERMSIG(escaped) == SIGSYS, "%s: the cage is open", what);
}

/* A set of communicators, one of each version, under one environment. */
static void prove(const char* what, bool pinned, bool journal) {
  struct comm comms[TUNER_NEWEST_API];
  for (int i = 0; i < TUNER_NEWEST_API; ++i) {
    comms[i] = comm_open(i + 1, 1, 8);
    if (i > 0) CHECK(comms[i].context != NULL, "%s: v%d steps aside", what, i + 1);
  }
  if (pinned) host.pin(RING, SIMPLE, 7);
  expect_no_counted_calls(what, comms, TUNER_NEWEST_API);
  expect_no_system_calls(what, comms, TUNER_NEWEST_API, journal);
  host.unpin();
  for (int i = 0; i < TUNER_NEWEST_API; ++i) comm_close(&comms[i]);
}

static void begin(const char* what) {
  case_begin("%s", what);
  claimed_version = 22105;
  use_policy(ROWS);
  env_set("DIAPASON_REGBUFF", "1");
}

int main(int count, char** arguments) {
  if (count != 2) give_up("usage: decision_path_is_quiet PLUGIN");
  find_real_functions();
  host_load(arguments[1]);

  begin("policy, NCCL");
  prove("policy, NCCL", false, false);
  begin("policy, RCCL");
  env_set("DIAPASON_LIBRARY", "rccl");
  prove("policy, RCCL", false, false);
  begin("pinned");
  prove("pinned", true, false);
  begin("observing");
  env_set("DIAPASON_MODE", "observe");
  prove("observing", false, false);
  begin("no policy");
  env_set("DIAPASON_POLICY", NULL);
  prove("no policy", false, false);

  /* The journal's ring is far smaller than the decisions: recording and dropping both happen. */
  begin("journal");
  env_set("DIAPASON_JOURNAL", temp_path("journal.jsonl"));
  env_set("DIAPASON_JOURNAL_TABLES", "1");
  env_set("DIAPASON_JOURNAL_RECORDS", "4096");
  prove("journal", false, true);
  expect_counters_to_work();
  return checks_report("decision_path_is_quiet");
}
