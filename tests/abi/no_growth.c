/* Communicators come and go for the life of a process; nothing may be left of them.
 *
 *   no_growth PLUGIN [ROUNDS]
 *
 * Memory is what the allocator has handed out: equal after a tenth of the rounds and after all of
 * them. Sanitizers replace the allocator and count nothing here; they look for leaks themselves. */
#define _GNU_SOURCE
#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "host.h"

enum { ROWS = 200, SLACK_BYTES = 4096 };
/* The journal keeps one byte of every communicator it has described, in an array that doubles when
 * it is full: twice that while nothing else is going on, more where its thread is behind on a busy
 * machine. The smallest thing that could leak is eight bytes. */
enum { JOURNAL_BYTES_PER_COMMUNICATOR = 5 };

struct footprint {
  size_t bytes;
  int descriptors;
  int threads;
};

static int count_entries(const char* folder) {
  DIR* entries = opendir(folder);
  if (entries == NULL) give_up("cannot read %s", folder);
  int count = 0;
  while (readdir(entries) != NULL) ++count;
  closedir(entries);
  return count;
}

static struct footprint footprint(void) {
  const struct mallinfo2 info = mallinfo2();
  /* Blocks beyond the mmap threshold are counted apart. */
  return (struct footprint){info.uordblks + info.hblkhd, count_entries("/proc/self/fd"),
                            count_entries("/proc/self/task")};
}

static const char* many_rows(void) {
  static char rows[ROWS * 64];
  size_t length = 0;
  for (int i = 0; i < ROWS; ++i) {
    length += (size_t)snprintf(rows + length, sizeof(rows) - length,
                               "allreduce,%d,%d,%s,simple,-1,-1,-1,%d,-1\n", i * 100, i * 100 + 99,
                               i % 2 ? "ring" : "tree", i % 5 == 0 ? 2 : -1);
  }
  return rows;
}

static void live_and_die(int api, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    struct comm comm = comm_open(api, 1, 8);
    const struct question question = ordinary(ALLREDUCE, 150);
    const struct choice got = decide(&comm, &question);
    CHECK(got.algorithm == RING, "round %d: %d/%d", i, got.algorithm, got.protocol);
    comm_close(&comm);
  }
}

static void prove(const char* what, int api, int rounds, long bytes_allowed) {
  live_and_die(api, rounds / 10);
  const struct footprint early = footprint();
  live_and_die(api, rounds - rounds / 10);
  const struct footprint late = footprint();
  const long grown = (long)late.bytes - (long)early.bytes;
  say("%s: v%d, %d communicators: %ld bytes more than after a tenth", what, api, rounds, grown);
  CHECK(grown <= bytes_allowed, "v%d grew by %ld bytes, allowed are %ld", api, grown,
        bytes_allowed);
  CHECK(late.descriptors == early.descriptors, "v%d: %d descriptors became %d", api,
        early.descriptors, late.descriptors);
  CHECK(late.threads == early.threads, "v%d: %d threads became %d", api, early.threads,
        late.threads);
}

/* The library may close the plugin with the last communicator and open it again with the next. */
static void reload(const char* plugin, int rounds) {
  case_begin("closed and opened again");
  use_policy(many_rows());
  const int before = count_entries("/proc/self/fd");
  for (int i = 0; i < rounds; ++i) {
    host_close();
    host_load(plugin);
    live_and_die(5, 1);
  }
  CHECK(count_entries("/proc/self/fd") == before, "descriptors stayed open");
}

static void without_journal(int rounds) {
  static const int versions[] = {5, 1};
  for (size_t i = 0; i < 2; ++i) {
    case_begin("200 rows, v%d", versions[i]);
    use_policy(many_rows());
    prove("200 rows", versions[i], rounds, SLACK_BYTES);
  }
}

/* A process keeps its journal until it ends, and numbers its communicators: in a child, both are
 * new, and the growth is that of a fresh process. */
static void with_journal(void* argument) {
  use_policy(many_rows());
  env_set("DIAPASON_JOURNAL", temp_path("journal-%p.jsonl"));
  const int rounds = *(const int*)argument;
  prove("with a journal", 5, rounds, SLACK_BYTES + (long)JOURNAL_BYTES_PER_COMMUNICATOR * rounds);
}

static void with_journal_v1(void* argument) {
  use_policy(many_rows());
  env_set("DIAPASON_JOURNAL", temp_path("journal-%p.jsonl"));
  const int rounds = *(const int*)argument;
  prove("with a journal", 1, rounds, SLACK_BYTES + (long)JOURNAL_BYTES_PER_COMMUNICATOR * rounds);
}

static void refused(int rounds) {
  case_begin("refused policy");
  env_set("DIAPASON_POLICY", "/nowhere");
  size_t bytes[2];
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < rounds; ++j) {
      struct comm comm = comm_open(5, 1, 8);
      comm_close(&comm);
    }
    bytes[i] = footprint().bytes;
  }
  CHECK(bytes[1] <= bytes[0] + SLACK_BYTES, "%zu bytes became %zu", bytes[0], bytes[1]);
}

int main(int count, char** arguments) {
  if (count != 2 && count != 3) give_up("usage: no_growth PLUGIN [ROUNDS]");
  int rounds = count == 3 ? atoi(arguments[2]) : 10000;
  host_load(arguments[1]);
  case_begin("with a journal");
  child_succeeds("with a journal, v5", 250, with_journal, &rounds);
  child_succeeds("with a journal, v1", 250, with_journal_v1, &rounds);
  without_journal(rounds);
  refused(rounds / 10);
  reload(arguments[1], rounds / 100);
  return checks_report("no_growth");
}
