/* NULL where something should be, numbers out of range, and which library it is that asks. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "drive.h"
#include "harness.h"

/* Rows that match everything: whatever is left untouched is so for another reason. */
#define EVERYTHING                                         \
  "broadcast,0,18446744073709551615,ring,simple,2" ANY     \
  "reduce,0,18446744073709551615,ring,simple,2" ANY        \
  "allgather,0,18446744073709551615,ring,simple,2" ANY     \
  "reducescatter,0,18446744073709551615,ring,simple,2" ANY \
  "allreduce,0,18446744073709551615,ring,simple,2" ANY

static void names(void) {
  case_begin("names");
  const char* const all[] = {host.v1->name, host.v2->name, host.v3->name, host.v4->name,
                             host.v5->name, host.v6->name, host.v7->name};
  for (int i = 0; i < TUNER_NEWEST_API; ++i) {
    CHECK(all[i] != NULL && strcmp(all[i], "diapason") == 0, "v%d has another name", i + 1);
  }
  CHECK(host.version() != NULL && host.version()[0] != '\0', "no version");
}

/* Asks and expects every output as it was. */
static void expect_untouched(const struct comm* comm, int collective) {
  const struct question question = ordinary(collective, 500);
  int channels = 7;
  if (comm->api <= 2) {
    int algorithm = UNDEF;
    int protocol = UNDEF;
    CHECK(ask_pair(comm, &question, &algorithm, &protocol, &channels) == TUNER_SUCCESS, "error");
    CHECK(algorithm == UNDEF && protocol == UNDEF, "%d/%d", algorithm, protocol);
  } else {
    struct table table;
    table_typical(&table, collective);
    const struct table before = table;
    CHECK(ask_table(comm, &question, &table, &channels) == TUNER_SUCCESS, "error");
    CHECK(table_same(&table, &before), "the table changed");
  }
  CHECK(channels == 7, "%d channels", channels);
}

static void null_contexts(void) {
  for (int api = TUNER_OLDEST_API; api <= TUNER_NEWEST_API; ++api) {
    case_begin("NULL context, v%d", api);
    use_policy(EVERYTHING);
    /* v1 has no context: this is a question before the first init. */
    struct comm none = {api, NULL};
    for (int c = 0; c < COLLECTIVES; ++c) expect_untouched(&none, c);
    comm_close(&none);
    comm_close(&none);
  }
  case_begin("nowhere to put the context");
  CHECK(host.v2->init(8, 1, captured_log, NULL) == TUNER_SUCCESS, "v2");
  CHECK(host.v3->init(8, 1, captured_log, NULL) == TUNER_SUCCESS, "v3");
  CHECK(host.v4->init(8, 1, captured_log, NULL) == TUNER_SUCCESS, "v4");
  CHECK(host.v5->init(NULL, 1, 8, 1, captured_log, NULL, NULL) == TUNER_SUCCESS, "v5");
  CHECK(host.v6->init(NULL, 1, 8, 1, captured_log, NULL, NULL) == TUNER_SUCCESS, "v6");
  CHECK(host.v7->init(NULL, 1, 8, 1, captured_log, NULL, NULL) == TUNER_SUCCESS, "v7");
}

static void null_outputs(void) {
  case_begin("NULL outputs");
  use_policy(EVERYTHING);
  struct comm comm = comm_open(2, 1, 8);
  int some = 7;
  CHECK(host.v2->get_coll_info(comm.context, ALLREDUCE, 500, 0, 0, 1, NULL, &some, &some) ==
                TUNER_SUCCESS &&
            some == 7,
        "no algorithm");
  CHECK(host.v2->get_coll_info(comm.context, ALLREDUCE, 500, 0, 0, 1, &some, NULL, &some) ==
                TUNER_SUCCESS &&
            some == 7,
        "no protocol");
  CHECK(host.v2->get_coll_info(comm.context, ALLREDUCE, 500, 0, 0, 1, &some, &some, NULL) ==
                TUNER_SUCCESS &&
            some == 7,
        "no channels");
  comm_close(&comm);
}

/* RCCL asks about AllToAllPivot and others, under numbers that differ from release to release. */
static void unknown_collectives(void) {
  static const int numbers[] = {-1, 5, 8, 11, 12, 1000, -2147483647 - 1, 2147483647, 256 + 4};
  for (int pinned = 0; pinned <= 1; ++pinned) {
    for (int api = TUNER_OLDEST_API; api <= TUNER_NEWEST_API; ++api) {
      case_begin("unknown collectives, v%d%s", api, pinned ? ", pinned" : "");
      use_policy(EVERYTHING);
      struct comm comm = comm_open(api, 1, 8);
      if (pinned) host.pin(RING, SIMPLE, 3);
      for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); ++i) {
        expect_untouched(&comm, numbers[i]);
      }
      host.unpin();
      comm_close(&comm);
    }
  }
}

/* aws-ofi-nccl once crashed here. Everything that logs is done: good, bad and refused policies. */
static void no_logger(void) {
  for (int api = TUNER_OLDEST_API; api <= TUNER_NEWEST_API; ++api) {
    case_begin("no logger, v%d", api);
    host.logger = NULL;
    use_policy(EVERYTHING);
    struct comm comm = comm_open(api, 1, 8);
    const struct question question = ordinary(ALLREDUCE, 500);
    CHECK(decide(&comm, &question).algorithm == RING, "the policy is not used");
    comm_close(&comm);
    env_set("DIAPASON_POLICY", "/nowhere");
    comm = comm_open(api, 1, 8);
    expect_untouched(&comm, ALLREDUCE);
    comm_close(&comm);
    env_set("DIAPASON_MODE", "nonsense");
    comm = comm_open(api, 1, 8);
    comm_close(&comm);
    host.logger = captured_log;
    CHECK(log_count(NCCL_LOG_WARN, "") + log_count(NCCL_LOG_INFO, "") == 0, "a line nevertheless");
  }
}

static void chunk_size(int api) {
  int (*const get_chunk_size)(void*, int, size_t, int, int, int, size_t*) =
      api == 6 ? host.v6->get_chunk_size : host.v7->get_chunk_size;
  case_begin("chunk size, v%d", api);
  use_policy(EVERYTHING);
  if (get_chunk_size == NULL) return; /* allowed: the library asks nothing then */
  struct comm comm = comm_open(api, 1, 8);
  size_t chunk = 524288;
  CHECK(get_chunk_size(comm.context, ALLREDUCE, 500, RING, SIMPLE, 1, &chunk) == TUNER_SUCCESS &&
            chunk == 524288,
        "the library's value became %zu", chunk);
  CHECK(get_chunk_size(NULL, ALLREDUCE, 500, RING, SIMPLE, 1, &chunk) == TUNER_SUCCESS &&
            chunk == 524288,
        "without a context it became %zu", chunk);
  CHECK(get_chunk_size(comm.context, 11, 0, 99, -1, 0, NULL) == TUNER_SUCCESS, "nowhere to put it");
  comm_close(&comm);
}

/* Communicators of several versions at once, as a process with two libraries has them. */
static void versions_side_by_side(void) {
  struct comm comms[TUNER_NEWEST_API];
  case_begin("all versions at once");
  for (int i = 0; i < TUNER_NEWEST_API; ++i) {
    char rows[80];
    snprintf(rows, sizeof(rows), "allreduce,0,999,%s,%s,-1" ANY, i % 2 ? "ring" : "tree",
             i % 3 ? "simple" : "ll");
    use_policy(rows);
    comms[i] = comm_open(i + 1, 1, 8);
  }
  const struct question question = ordinary(ALLREDUCE, 500);
  for (int i = 0; i < TUNER_NEWEST_API; ++i) {
    const struct choice got = decide(&comms[i], &question);
    CHECK(got.algorithm == (i % 2 ? RING : TREE) && got.protocol == (i % 3 ? SIMPLE : LL),
          "v%d answers %d/%d: another one's policy", i + 1, got.algorithm, got.protocol);
  }
  for (int i = 0; i < TUNER_NEWEST_API; ++i) comm_close(&comms[i]);
}

/* fake_library.c, loaded under this name. */
struct fake {
  tuner_logger log;
  int* version;
  int* lines;
};

static bool load_fake(const char* name, struct fake* fake) {
  char path[512];
  snprintf(path, sizeof(path), "%s/%s", fake_libraries, name);
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!CHECK(handle != NULL, "%s: %s", path, dlerror())) return false;
  *(void**)&fake->log = dlsym(handle, "fake_log");
  fake->version = dlsym(handle, "fake_version");
  fake->lines = dlsym(handle, "fake_lines");
  return CHECK(fake->log != NULL && fake->version != NULL && fake->lines != NULL, "%s", name);
}

/* RCCL is recognised by its file's name or by what it exports; the sign is the 0 in the table and
 * the numbers of the log levels. */
static void detection(void) {
  static const struct {
    const char* file;
    int version;
    const char* forced;
    bool rccl;
    int warn;
  } cases[] = {
      {"libnccl-fake.so", 22809, NULL, false, NCCL_LOG_WARN},
      {"libnccl-fake.so", 22809, "rccl", true, NEW_RCCL_LOG_WARN},
      {"librccl-fake.so", 22803, NULL, true, NEW_RCCL_LOG_WARN},
      {"librccl-fake.so", 0, NULL, true, NEW_RCCL_LOG_WARN},
      {"librccl-fake.so", 22105, NULL, true, NCCL_LOG_WARN},
      {"librccl-fake.so", 22803, "nccl", false, NCCL_LOG_WARN},
      {"librccl-fake.so", 22803, "auto", true, NEW_RCCL_LOG_WARN},
      {"libframework-fake.so", 22707, NULL, true, NEW_RCCL_LOG_WARN},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    struct fake fake;
    case_begin("%s %d %s", cases[i].file, cases[i].version, cases[i].forced ? cases[i].forced : "");
    if (!load_fake(cases[i].file, &fake)) continue;
    use_policy("allreduce,0,999,ring,simple,-1,-1,-1,-1,-1\nallreduce,0,9,tree,ll,-1,1,8,1,1\n");
    env_set("DIAPASON_LIBRARY", cases[i].forced);
    *fake.version = cases[i].version;
    memset(fake.lines, 0, 8 * sizeof(int));
    host.logger = fake.log;
    struct comm comm = comm_open(5, 1, 8);
    host.logger = captured_log;
    struct table table;
    table_typical(&table, ALLREDUCE);
    const float estimate = *table_at(&table, RING, SIMPLE);
    int channels = 0;
    const struct question question = ordinary(ALLREDUCE, 500);
    ask_table(&comm, &question, &table, &channels);
    CHECK(*table_at(&table, RING, SIMPLE) == (cases[i].rccl ? 0.0f : estimate),
          "the chosen entry is %g", *table_at(&table, RING, SIMPLE));
    /* The row that depends on regBuff makes one warning; the policy in use is one line of info. */
    CHECK(fake.lines[cases[i].warn] == 1 && fake.lines[cases[i].warn + 1] == 1,
          "%d and %d lines at levels %d and %d", fake.lines[cases[i].warn],
          fake.lines[cases[i].warn + 1], cases[i].warn, cases[i].warn + 1);
    comm_close(&comm);
  }
}

void drive_edges(void) {
  names();
  null_contexts();
  null_outputs();
  unknown_collectives();
  no_logger();
  chunk_size(6);
  chunk_size(7);
  versions_side_by_side();
  detection();
}
