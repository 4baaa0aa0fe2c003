/* What libraries from 2.31 on do otherwise: questions that are about no call, the last of equal
 * costs, NCCL_MIN_CTAS, tables that a call's own configuration has thinned out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drive.h"
#include "harness.h"

#define TREE_ROW "allreduce,0,999,tree,simple,4" ANY

static void no_call(const struct comm* comm, int pipe_ops, bool bare) {
  struct question question = ordinary(ALLREDUCE, 500);
  question.pipe_ops = pipe_ops;
  int channels = 7;
  if (comm->api <= 2) {
    int algorithm = UNDEF;
    int protocol = UNDEF;
    CHECK(ask_pair(comm, &question, &algorithm, &protocol, &channels) == TUNER_SUCCESS, "error");
    CHECK(algorithm == UNDEF && protocol == UNDEF, "%d/%d", algorithm, protocol);
  } else {
    struct table table;
    table_typical(&table, ALLREDUCE);
    if (bare) table_fill(&table, ALGORITHMS, PROTOCOLS, -1.0f);
    const struct table before = table;
    CHECK(ask_table(comm, &question, &table, &channels) == TUNER_SUCCESS, "error");
    CHECK(table_same(&table, &before), "the table changed");
  }
  CHECK(channels == 7, "%d channels", channels);
}

/* Neither a row nor a pin answers them, and they do not count as answered or asked. */
static void no_calls(void) {
  static const char* const rows[] = {TREE_ROW, "allreduce,0,999,tree,-1,4" ANY,
                                     "allreduce,0,999,-1,-1,4" ANY};
  for (int api = TUNER_OLDEST_API; api <= TUNER_NEWEST_API; ++api) {
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
      case_begin("questions about no call, v%d, row %zu", api, i);
      use_policy(rows[i]);
      claimed_version = api >= 6 ? 23102 : 22105;
      struct comm comm = comm_open(api, 1, 8);
      no_call(&comm, 0, false);
      if (api >= 3) no_call(&comm, 1, true);
      if (api >= 3) no_call(&comm, 0, true);
      host.pin(TREE, SIMPLE, 5);
      no_call(&comm, 0, false);
      if (api >= 3) no_call(&comm, 1, true);
      unsigned long long asked = 99;
      unsigned long long applied = 99;
      host.pin_counts(&asked, &applied);
      CHECK(asked == 0 && applied == 0, "%llu asked, %llu applied", asked, applied);
      host.unpin();
      const struct question call = ordinary(ALLREDUCE, 500);
      if (i == 0) CHECK(decide(&comm, &call).algorithm == TREE, "the call itself is not answered");
      comm_close(&comm);
      CHECK(log_count(NCCL_LOG_INFO, api >= 3 ? "came: 5 questions" : "came: 2 questions") == 1,
            "the log does not say how many there were");
    }
  }
}

static int count_of(const char* text, const char* word) {
  int count = 0;
  for (const char* at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) ++count;
  return count;
}

/* In a process of its own, whose journal holds nothing else. */
static void ask_with_journal(void* argument) {
  const char* path = temp_path("no-calls.jsonl");
  (void)argument;
  use_policy(TREE_ROW);
  env_set("DIAPASON_JOURNAL", path);
  claimed_version = 23102;
  struct comm comm = comm_open(6, 1, 8);
  no_call(&comm, 0, false);
  no_call(&comm, 0, true);
  no_call(&comm, 1, true);
  const struct question call = ordinary(ALLREDUCE, 500);
  decide(&comm, &call);
  comm_close(&comm);
  char* text = read_file(path);
  if (!CHECK(text != NULL, "no journal")) return;
  CHECK(count_of(text, "\"reason\":") == 1, "the journal has %d decisions:\n%s",
        count_of(text, "\"reason\":"), text);
  free(text);
}

static void no_calls_in_the_journal(void) {
  case_begin("questions about no call are not in the journal");
  if (getenv("DIAPASON_JOURNAL") != NULL) return; /* the second round's is open already */
  child_succeeds("the journal", 10, ask_with_journal, NULL);
}

/* Whatever the others cost, the chosen entry wins strictly: the first and the last of equals are
 * not it. */
static void equals(bool rccl, int version, float cost) {
  case_begin("equal costs of %g, %s, %d", cost, rccl ? "rccl" : "nccl", version);
  env_set("DIAPASON_LIBRARY", rccl ? "rccl" : "nccl");
  claimed_version = version;
  struct comm comm = comm_open(6, 1, 8);
  const struct question question = ordinary(ALLREDUCE, 500);
  for (int i = 0; i < ALGORITHMS * PROTOCOLS; ++i) {
    struct table table;
    table_fill(&table, ALGORITHMS, PROTOCOLS, cost);
    const struct table before = table;
    int channels = 0;
    int algorithm = UNDEF;
    int protocol = UNDEF;
    host.pin(i / PROTOCOLS, i % PROTOCOLS, 0);
    CHECK(ask_table(&comm, &question, &table, &channels) == TUNER_SUCCESS, "error");
    CHECK(table_winner(&before, &table, &algorithm, &protocol) && algorithm == i / PROTOCOLS &&
              protocol == i % PROTOCOLS,
          "the library takes %d/%d, not entry %d", algorithm, protocol, i);
  }
  host.unpin();
  comm_close(&comm);
}

/* Half a row stands for what the library itself would choose among what the row leaves open. */
static void half_rows(int version, int algorithm, int protocol) {
  case_begin("half a row and equal costs, %d", version);
  claimed_version = version;
  struct comm comm = comm_open(6, 1, 8);
  const struct question question = ordinary(ALLREDUCE, 500);
  for (int half = 0; half < 2; ++half) {
    struct table table;
    table_fill(&table, ALGORITHMS, PROTOCOLS, 10.0f);
    const struct table before = table;
    int channels = 0;
    int won = UNDEF;
    int won_protocol = UNDEF;
    half == 0 ? host.pin(RING, UNDEF, 0) : host.pin(UNDEF, SIMPLE, 0);
    ask_table(&comm, &question, &table, &channels);
    table_winner(&before, &table, &won, &won_protocol);
    CHECK(half == 0 ? won == RING && won_protocol == protocol
                    : won == algorithm && won_protocol == SIMPLE,
          "%d/%d", won, won_protocol);
  }
  host.unpin();
  comm_close(&comm);
}

#define Q_AR .question = {ALLREDUCE, 500}
#define CTAS(value) \
  { "NCCL_MIN_CTAS=" value }

static const struct scenario kMinCtas[] = {
    {"2.31: NCCL_MIN_CTAS wins", 6, NEWEST, "allreduce,0,999,ring,ll,4" ANY, CTAS("16"),
     .version = 23102, Q_AR, .expected = {RING, LL, 16}},
    {"2.31: in hexadecimal", 6, NEWEST, "allreduce,0,999,ring,-1,4" ANY, CTAS("0x10"),
     .version = 23102, Q_AR, .expected = {RING, LL, 16}},
    {"2.31: more than it", 6, NEWEST, "allreduce,0,999,ring,ll,24" ANY, CTAS("16"),
     .version = 23102, Q_AR, .expected = {RING, LL, 24}},
    {"2.31: no count, nothing is said", 6, NEWEST, "allreduce,0,999,ring,ll,-1" ANY, CTAS("16"),
     .version = 23102, Q_AR, .expected = {RING, LL, 0}},
    {"2.31: a number the library ignores", 6, NEWEST, "allreduce,0,999,ring,ll,4" ANY, CTAS("999"),
     .version = 23102, Q_AR, .expected = {RING, LL, 4}},
    {"2.31: no number", 6, NEWEST, "allreduce,0,999,ring,ll,4" ANY, CTAS("many"), .version = 23102,
     Q_AR, .expected = {RING, LL, 4}},
    {"2.30: the tuner wins", 6, 6, "allreduce,0,999,ring,ll,4" ANY, CTAS("16"), .version = 23007,
     Q_AR, .expected = {RING, LL, 4}},
};

/* 8-bit floats: from 2.31 on no entry is -1024, and ring is 1024 times its cost. */
static void guarded_ring(int version, float factor, bool chosen) {
  case_begin("ring costs %g times as much, %d", factor, version);
  use_policy("allreduce,0,999,ring,simple,-1" ANY);
  claimed_version = version;
  struct comm comm = comm_open(6, 2, 16);
  struct table table;
  table_typical(&table, ALLREDUCE);
  for (int p = 0; p < PROTOCOLS; ++p) *table_at(&table, RING, p) *= factor;
  const struct table before = table;
  const struct question question = ordinary(ALLREDUCE, 500);
  int channels = 0;
  ask_table(&comm, &question, &table, &channels);
  CHECK(table_same(&table, &before) != chosen, chosen ? "it is not chosen" : "it is chosen");
  comm_close(&comm);
}

/* A call whose own configuration leaves only some pairs: the row does not fit it, and fits the next
 * call again. */
static void thinned_tables(void) {
  for (int api = 6; api <= TUNER_NEWEST_API; ++api) {
    case_begin("a call's own configuration, v%d", api);
    use_policy(TREE_ROW);
    claimed_version = 23206;
    struct comm comm = comm_open(api, 1, 8);
    const struct question question = ordinary(ALLREDUCE, 500);
    struct table table;
    table_fill(&table, ALGORITHMS, PROTOCOLS, -1.0f);
    *table_at(&table, RING, SIMPLE) = 12.0f;
    *table_at(&table, RING, LL) = 10.0f;
    const struct table before = table;
    int channels = 0;
    CHECK(ask_table(&comm, &question, &table, &channels) == TUNER_SUCCESS, "error");
    CHECK(table_same(&table, &before) && channels == 0, "the thinned table changed");
    const struct choice got = decide(&comm, &question);
    CHECK(got.algorithm == TREE && got.protocol == SIMPLE && got.channels == 4,
          "the next call: %d/%d, %d channels", got.algorithm, got.protocol, got.channels);
    comm_close(&comm);
  }
}

void drive_2_31(void) {
  no_calls();
  no_calls_in_the_journal();
  for (int rccl = 0; rccl <= 1; ++rccl) {
    for (int version = 23007; version <= 23102; version += 95) {
      equals(rccl, version, 10.0f);
      equals(rccl, version, 0.0f);
    }
  }
  half_rows(23007, TREE, LL);
  half_rows(23102, PAT, SIMPLE);
  RUN(kMinCtas);
  guarded_ring(23102, 1024.0f, false);
  guarded_ring(23102, 100.0f, true);
  guarded_ring(23007, 1024.0f, true);
  thinned_tables();
}
