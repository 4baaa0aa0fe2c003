/* Processes fork, exit and are killed while a journal is open. Nobody hangs, and what is in the
 * file can be read.
 *
 *   fork_and_exit PLUGIN JOURNAL_CHECKER
 *
 * A process has one journal for life, so every case runs in a child of its own. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "host.h"

#define ROWS "allreduce,0,999,ring,ll,-1,-1,-1,-1,-1\n"

/* A sanitizer's run-time library takes locks of its own in malloc and dlopen, and a child forked
 * while another thread holds one of them hangs there. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static const char* g_checker;

static void check_journal(const char* journal, const char* options) {
  char command[1400];
  snprintf(command, sizeof(command), "'%s' %s '%s'", g_checker, options, journal);
  CHECK(system(command) == 0, "%s is not in order", journal);
}

/* Communicators of every API version were asked this often each. */
static void check_journal_of_all(const char* journal, const char* options, int times) {
  char all[64];
  snprintf(all, sizeof(all), "%s --exactly %d", options, times * TUNER_NEWEST_API);
  check_journal(journal, all);
}

static void ask(const struct comm* comm, int times) {
  for (int i = 0; i < times; ++i) {
    const struct question question = ordinary(ALLREDUCE, 500);
    CHECK(decide(comm, &question).algorithm == RING, "v%d: a wrong answer", comm->api);
  }
}

static void open_all(struct comm* comms) {
  for (int i = 0; i < TUNER_NEWEST_API; ++i) comms[i] = comm_open(i + 1, 1, 8);
}

static void use_all(struct comm* comms, int times) {
  for (int i = 0; i < TUNER_NEWEST_API; ++i) ask(&comms[i], times);
}

static void close_all(struct comm* comms) {
  for (int i = 0; i < TUNER_NEWEST_API; ++i) comm_close(&comms[i]);
}

static const char* use_journal(const char* name) {
  const char* path = temp_path(name);
  use_policy(ROWS);
  env_set("DIAPASON_JOURNAL", path);
  return path;
}

/* Waits for a child that this case forked itself. */
static void expect_end(pid_t child, const char* what) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: %s %d", what,
        !WIFSIGNALED(status)          ? "exit status"
        : WTERMSIG(status) == SIGALRM ? "hung, signal"
                                      : "killed by signal",
        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

/* exit() in a child whose checks are counted by its exit status. */
static void leave(int failures_before) {
  exit(checks_failed() == failures_before ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* A fork in the middle of a job: the child uses what it inherited, then makes its own. */
static void both_go_on(void* argument) {
  (void)argument;
  const char* journal = use_journal("forked.jsonl");
  const int failures_before = checks_failed();
  struct comm comms[TUNER_NEWEST_API];
  open_all(comms);
  use_all(comms, 100);
  if (SANITIZED) usleep(200 * 1000); /* until the journal's thread sleeps */
  const pid_t child = fork();
  if (child == 0) {
    alarm(600);
    use_all(comms, 50); /* the parent's journal: dropped */
    close_all(comms);
    open_all(comms);
    use_all(comms, 70); /* a journal of its own */
    close_all(comms);
    leave(failures_before);
  }
  use_all(comms, 100);
  expect_end(child, "the forked child");
  close_all(comms);
  check_journal_of_all(journal, "", 200);
  char own[512];
  snprintf(own, sizeof(own), "%s.%d", journal, (int)child);
  check_journal_of_all(own, "--end", 70);
}

/* Forks at the worst moments: another thread keeps the journal busy and its lock taken. */
static atomic_bool g_stop;

static void* keep_flushing(void* argument) {
  while (!atomic_load(&g_stop)) {
    struct comm comm = comm_open(*(const int*)argument, 1, 8);
    ask(&comm, 20);
    comm_close(&comm); /* waits until the journal is written */
  }
  return NULL;
}

enum { FORKS = 400 };

static void forks_at_any_moment(void* argument) {
  (void)argument;
  use_journal("storm.jsonl");
  const int failures_before = checks_failed();
  struct comm comms[TUNER_NEWEST_API];
  open_all(comms);
  pthread_t threads[2];
  static const int versions[] = {5, 1};
  for (int i = 0; i < 2; ++i) {
    if (pthread_create(&threads[i], NULL, keep_flushing, (void*)&versions[i]) != 0) {
      give_up("no thread");
    }
  }
  for (int i = 0; i < FORKS && checks_failed() == failures_before; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(300);
      use_all(comms, 1);
      close_all(comms);
      _exit(checks_failed() == failures_before ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    expect_end(child, "a child forked while the journal is written closes its communicators");
  }
  for (int i = 0; i < FORKS && checks_failed() == failures_before; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(300);
      struct comm comm = comm_open(5, 1, 8);
      ask(&comm, 1);
      comm_close(&comm);
      leave(failures_before);
    }
    expect_end(child, "a child forked while the journal is written makes a communicator");
  }
  atomic_store(&g_stop, true);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  close_all(comms);
}

/* Programs rarely destroy their communicators. */
static void exits_without_finalize(void* argument) {
  const int failures_before = checks_failed();
  env_set("DIAPASON_JOURNAL", argument);
  use_policy(ROWS);
  struct comm comms[TUNER_NEWEST_API];
  open_all(comms);
  use_all(comms, 500);
  leave(failures_before);
}

/* Nor do they stop their threads. */
static void* keep_asking(void* argument) {
  while (!atomic_load(&g_stop)) ask(argument, 100);
  return NULL;
}

static void exits_while_asked(void* argument) {
  const int failures_before = checks_failed();
  env_set("DIAPASON_JOURNAL", argument);
  use_policy(ROWS);
  static struct comm comms[4];
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) {
    comms[i] = comm_open(3 + i, 1, 8);
    if (pthread_create(&threads[i], NULL, keep_asking, &comms[i]) != 0) give_up("no thread");
  }
  usleep(50 * 1000);
  leave(failures_before);
}

static void killed_in_the_middle(void) {
  const char* journal = temp_path("killed.jsonl");
  const pid_t child = fork();
  if (child == 0) {
    env_set("DIAPASON_JOURNAL", journal);
    env_set("DIAPASON_JOURNAL_TABLES", "1");
    use_policy(ROWS);
    struct comm comm = comm_open(5, 1, 8);
    while (true) ask(&comm, 1000);
  }
  /* Far more than is looked for below; it never ends by itself. */
  struct stat file = {0};
  for (int i = 0; i < 60000 && (stat(journal, &file) != 0 || file.st_size < 1 << 20); ++i) {
    usleep(10 * 1000);
  }
  kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "it ended before: status %d", status);
  check_journal(journal, "--cut --decisions 100");
}

/* Two processes with one name in their environment: neither may spoil the other's file. */
static void one_name_for_two(void* argument) {
  (void)argument;
  const char* journal = use_journal("shared.jsonl");
  int ready[2];
  int done[2];
  if (pipe(ready) != 0 || pipe(done) != 0) give_up("pipe: %s", strerror(errno));
  const int failures_before = checks_failed();
  const pid_t other = fork();
  char byte = 'x';
  if (other == 0) {
    close(done[1]);
    struct comm comm = comm_open(5, 1, 8);
    ask(&comm, 300);
    if (write(ready[1], &byte, 1) != 1 || read(done[0], &byte, 1) < 0) _exit(EXIT_FAILURE);
    ask(&comm, 11);
    comm_close(&comm);
    leave(failures_before);
  }
  CHECK(read(ready[0], &byte, 1) == 1, "the other process is gone");
  struct comm comm = comm_open(5, 1, 8);
  ask(&comm, 40);
  comm_close(&comm);
  close(done[1]);
  expect_end(other, "the other process");
  check_journal(journal, "--end --exactly 311");
  char own[512];
  snprintf(own, sizeof(own), "%s.%d", journal, (int)getpid());
  check_journal(own, "--exactly 40");
}

/* The disk is full: here, the file may not grow. The signal that comes with it must not kill. */
static void no_room_for_the_journal(void* argument) {
  (void)argument;
  const char* journal = use_journal("full.jsonl");
  struct comm comm = comm_open(5, 1, 8);
  const struct rlimit limit = {20000, 20000};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) give_up("setrlimit: %s", strerror(errno));
  ask(&comm, 2000);
  comm_close(&comm);
  CHECK(log_count(NCCL_LOG_WARN, journal) == 1, "no warning names the journal");
  check_journal(journal, "--cut --decisions 10");
}

static void limit_of_the_journal(void* argument) {
  (void)argument;
  const char* journal = use_journal("limited.jsonl");
  env_set("DIAPASON_JOURNAL_LIMIT", "64KiB");
  struct comm comm = comm_open(5, 1, 8);
  ask(&comm, 5000);
  comm_close(&comm);
  CHECK(log_count(NCCL_LOG_WARN, journal) == 1, "no warning names the journal");
  struct stat info;
  CHECK(stat(journal, &info) == 0 && info.st_size <= 65536 && info.st_size > 60000,
        "the file has %ld bytes", (long)info.st_size);
  check_journal(journal, "--decisions 100");
}

/* A ring that is too small loses records, and says how many. */
static void lost_records(void* argument) {
  (void)argument;
  const char* journal = use_journal("lost.jsonl");
  env_set("DIAPASON_JOURNAL_RECORDS", "64");
  struct comm comm = comm_open(5, 1, 8);
  ask(&comm, 200000);
  comm_close(&comm);
  CHECK(log_count(NCCL_LOG_WARN, "DIAPASON_JOURNAL_RECORDS") == 1, "no warning");
  char* text = read_file(journal);
  CHECK(text != NULL && strstr(text, "\"type\":\"dropped\"") != NULL, "the file does not say it");
  free(text);
  check_journal(journal, "--decisions 64");
}

int main(int count, char** arguments) {
  if (count != 3) give_up("usage: fork_and_exit PLUGIN JOURNAL_CHECKER");
  g_checker = arguments[2];
  host_load(arguments[1]);

  case_begin("fork");
  child_succeeds("both go on", 60, both_go_on, NULL);
  case_begin("forks at any moment");
  if (SANITIZED) {
    say("SKIP: forks at any moment: a sanitizer's own locks do not survive it");
  } else {
    child_succeeds("forks at any moment", 120, forks_at_any_moment, NULL);
  }

  case_begin("exit without finalize");
  char* journal = (char*)temp_path("exit.jsonl");
  child_succeeds("exit without finalize", 30, exits_without_finalize, journal);
  check_journal_of_all(journal, "--end", 500);
  case_begin("exit while other threads ask");
  journal = (char*)temp_path("asked.jsonl");
  child_succeeds("exit while other threads ask", 30, exits_while_asked, journal);
  check_journal(journal, "--end --decisions 100");

  case_begin("SIGKILL");
  killed_in_the_middle();
  case_begin("one name for two processes");
  child_succeeds("one name for two processes", 30, one_name_for_two, NULL);
  case_begin("no room");
  child_succeeds("no room for the journal", 30, no_room_for_the_journal, NULL);
  case_begin("limit");
  child_succeeds("the journal's limit", 30, limit_of_the_journal, NULL);
  case_begin("lost records");
  child_succeeds("lost records", 30, lost_records, NULL);
  return checks_report("fork_and_exit");
}
