#define _GNU_SOURCE
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

enum { MOST_LINES = 512, LONGEST_LINE = 1024, LONGEST_PATH = 512 };

/* Shared with forked children, so that their checks count. */
static struct sums {
  atomic_int checks;
  atomic_int failures;
} * g_sums;
static char g_case[256];

__attribute__((constructor)) static void share_sums(void) {
  g_sums = mmap(NULL, sizeof(*g_sums), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (g_sums == MAP_FAILED) _exit(EXIT_FAILURE);
}

/* Failure lines must be seen even while stdout is held. */
static int g_report_fd = -1;

static int report_fd(void) {
  if (g_report_fd < 0) g_report_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  return g_report_fd;
}

static void say_list(const char* format, va_list arguments) {
  char text[LONGEST_LINE];
  int length = vsnprintf(text, sizeof(text) - 1, format, arguments);
  if (length > (int)sizeof(text) - 2) length = (int)sizeof(text) - 2;
  text[length] = '\n';
  if (write(report_fd(), text, (size_t)length + 1) < 0) _exit(EXIT_FAILURE);
}

void say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say_list(format, arguments);
  va_end(arguments);
}

void give_up(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say_list(format, arguments);
  va_end(arguments);
  exit(EXIT_FAILURE);
}

static void make_folder(void);

void case_begin(const char* format, ...) {
  make_folder(); /* before any child is forked, which would have to remove it */
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(g_case, sizeof(g_case), format, arguments);
  va_end(arguments);
  env_reset();
  log_clear();
  claimed_version = 0;
}

bool check_that(bool holds, const char* file, int line, const char* condition, const char* format,
                ...) {
  atomic_fetch_add_explicit(&g_sums->checks, 1, memory_order_relaxed);
  if (holds) return true;
  atomic_fetch_add_explicit(&g_sums->failures, 1, memory_order_relaxed);
  char text[LONGEST_LINE / 2];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  const char* slash = strrchr(file, '/');
  say("%s:%d: [%s] %s: %s", slash != NULL ? slash + 1 : file, line, g_case, condition, text);
  return false;
}

int checks_failed(void) { return atomic_load(&g_sums->failures); }

int checks_report(const char* program) {
  say("%s: %d checks, %d failed", program, atomic_load(&g_sums->checks), checks_failed());
  return checks_failed() == 0 && atomic_load(&g_sums->checks) > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* The scratch folder. */

static char g_folder[LONGEST_PATH / 2];
static pid_t g_folder_owner;

/* Chained, so that a leak checker sees that they are still ours. */
static struct path {
  struct path* next;
  char text[LONGEST_PATH];
} * g_paths;

static int remove_entry(const char* path, const struct stat* info, int kind, struct FTW* where) {
  (void)info, (void)kind, (void)where;
  return remove(path);
}

static void remove_folder(void) {
  if (getpid() != g_folder_owner) return; /* a forked child's exit must not take it away */
  nftw(g_folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_folder(void) {
  if (g_folder[0] != '\0') return;
  const char* base = getenv("TMPDIR");
  snprintf(g_folder, sizeof(g_folder), "%s/diapason-abi-XXXXXX", base != NULL ? base : "/tmp");
  if (mkdtemp(g_folder) == NULL) give_up("cannot make %s: %s", g_folder, strerror(errno));
  g_folder_owner = getpid();
  atexit(remove_folder);
}

const char* temp_path(const char* name) {
  make_folder();
  struct path* path = malloc(sizeof(*path));
  if (path == NULL) give_up("out of memory");
  snprintf(path->text, sizeof(path->text), "%s/%s", g_folder, name);
  path->next = g_paths;
  g_paths = path;
  return path->text;
}

const char* write_file(const char* name, const void* content, size_t size) {
  const char* path = temp_path(name);
  FILE* file = fopen(path, "wb");
  if (file == NULL || fwrite(content, 1, size, file) != size || fclose(file) != 0) {
    give_up("cannot write %s: %s", path, strerror(errno));
  }
  return path;
}

const char* write_text(const char* name, const char* text) {
  return write_file(name, text, strlen(text));
}

const char* use_policy(const char* rows) {
  const char* path = write_text("policy.conf", rows);
  env_set("DIAPASON_POLICY", path);
  return path;
}

char* read_file(const char* path) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) return NULL;
  size_t size = 0;
  size_t room = 4096;
  char* text = malloc(room);
  while (text != NULL) {
    size += fread(text + size, 1, room - size - 1, file);
    if (size < room - 1) break;
    room *= 2;
    text = realloc(text, room);
  }
  fclose(file);
  if (text != NULL) text[size] = '\0';
  return text;
}

/* The environment. */

void env_set(const char* name, const char* value) {
  const int failed = value == NULL ? unsetenv(name) : setenv(name, value, 1);
  if (failed) give_up("cannot set %s: %s", name, strerror(errno));
}

/* The name of a variable that would change what the plugin does, or false. */
static bool matters(const char* entry, char* name, size_t size) {
  if (strncmp(entry, "DIAPASON_", 9) != 0 && strncmp(entry, "NCCL_", 5) != 0) return false;
  const size_t length = strcspn(entry, "=");
  if (length >= size) return false;
  memcpy(name, entry, length);
  name[length] = '\0';
  return true;
}

enum { MOST_KEPT = 8 };
static struct {
  const char* name;
  const char* value;
} g_kept[MOST_KEPT];

void env_keep(const char* name, const char* value) {
  int i = 0;
  while (i < MOST_KEPT && g_kept[i].name != NULL) ++i;
  if (i == MOST_KEPT) give_up("too many kept variables");
  g_kept[i].name = name;
  g_kept[i].value = value;
}

void env_reset(void) {
  char name[128];
  for (char** entry = environ; *entry != NULL;) {
    if (matters(*entry, name, sizeof(name))) {
      env_set(name, NULL); /* the next entry moves up */
    } else {
      ++entry;
    }
  }
  for (int i = 0; i < MOST_KEPT && g_kept[i].name != NULL; ++i) {
    env_set(g_kept[i].name, g_kept[i].value);
  }
}

/* The library this program pretends to be. */

int claimed_version;

int ncclGetVersion(int* version);
int ncclGetVersion(int* version) {
  if (claimed_version == 0) return 4;
  *version = claimed_version;
  return 0;
}

static struct {
  pthread_mutex_t mutex;
  int count;
  struct {
    int level;
    char text[LONGEST_LINE];
  } lines[MOST_LINES];
} g_log = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* A child that is forked while another thread logs must find the lock free. */
static void lock_log(void) { pthread_mutex_lock(&g_log.mutex); }
static void unlock_log(void) { pthread_mutex_unlock(&g_log.mutex); }
__attribute__((constructor)) static void keep_log_across_forks(void) {
  if (pthread_atfork(lock_log, unlock_log, unlock_log) != 0) abort();
}

void captured_log(int level, unsigned long flags, const char* file, int line, const char* format,
                  ...) {
  (void)flags, (void)file, (void)line;
  pthread_mutex_lock(&g_log.mutex);
  if (g_log.count < MOST_LINES) {
    va_list arguments;
    va_start(arguments, format);
    g_log.lines[g_log.count].level = level;
    vsnprintf(g_log.lines[g_log.count].text, LONGEST_LINE, format, arguments);
    va_end(arguments);
    ++g_log.count;
  }
  pthread_mutex_unlock(&g_log.mutex);
}

void log_clear(void) {
  pthread_mutex_lock(&g_log.mutex);
  g_log.count = 0;
  pthread_mutex_unlock(&g_log.mutex);
}

int log_count(int level, const char* text) {
  int found = 0;
  pthread_mutex_lock(&g_log.mutex);
  for (int i = 0; i < g_log.count; ++i) {
    found += g_log.lines[i].level == level && strstr(g_log.lines[i].text, text) != NULL;
  }
  pthread_mutex_unlock(&g_log.mutex);
  return found;
}

void log_print(void) {
  for (int i = 0; i < g_log.count; ++i)
    say("  log %d: %s", g_log.lines[i].level, g_log.lines[i].text);
}

/* stdout and stderr. */

static int g_held[2] = {-1, -1};
static int g_holder = -1;

void output_hold(void) {
  (void)report_fd();
  fflush(NULL);
  g_holder = open(temp_path("output"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  g_held[0] = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  g_held[1] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  if (g_holder < 0 || dup2(g_holder, STDOUT_FILENO) < 0 || dup2(g_holder, STDERR_FILENO) < 0) {
    give_up("cannot hold the output: %s", strerror(errno));
  }
}

long output_release(void) {
  fflush(NULL);
  const long written = (long)lseek(g_holder, 0, SEEK_END);
  dup2(g_held[0], STDOUT_FILENO);
  dup2(g_held[1], STDERR_FILENO);
  close(g_held[0]);
  close(g_held[1]);
  close(g_holder);
  return written;
}

/* Children. */

bool child_succeeds(const char* what, int seconds, void (*body)(void*), void* argument) {
  return child_ends(what, seconds, body, argument, EXIT_SUCCESS);
}

bool child_ends(const char* what, int seconds, void (*body)(void*), void* argument, int allowed) {
  (void)report_fd();
  fflush(NULL);
  const pid_t child = fork();
  if (child < 0) give_up("cannot fork: %s", strerror(errno));
  if (child == 0) {
    alarm((unsigned)seconds * 10); /* a slow machine */
    const int failures_before = checks_failed();
    body(argument);
    _exit(checks_failed() == failures_before ? EXIT_SUCCESS : EXIT_FAILURE);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    return CHECK(false, "%s: the child %s (signal %d)", what,
                 number == SIGALRM ? "hung" : "was killed", number);
  }
  const int code = WEXITSTATUS(status);
  return CHECK(code == EXIT_SUCCESS || code == allowed, "%s: the child's exit status is %d", what,
               code);
}
