/* DIAPASON_CHAIN: another tuner is asked first. Its answer is the default; the policy wins over it;
 * whatever is wrong with it costs a warning and nothing else.
 *
 *   chain PLUGIN FOLDER
 *
 * FOLDER holds the chain_*.c libraries. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "host.h"

#define ANY ",-1,-1,-1,-1\n"

static const char* g_plugin;
static const char* g_folder;

/* As chain_good.c has it. */
struct chain_counts {
  int inits;
  int finalizes;
  int asked;
  int last_api;
  int last_collective;
  size_t last_ranks;
  size_t last_nodes;
  uint64_t last_comm_id;
};

static const char* library(const char* name) {
  static char path[512];
  snprintf(path, sizeof(path), "%s/libnccl-tuner-%s.so", g_folder, name);
  return path;
}

static struct chain_counts* good_counts(void) {
  void* handle = dlopen(library("chain_good"), RTLD_NOW | RTLD_LOCAL);
  struct chain_counts* counts = handle != NULL ? dlsym(handle, "chain_counts") : NULL;
  if (counts == NULL) give_up("%s: %s", library("chain_good"), dlerror());
  return counts;
}

static void begin(const char* what, int api, const char* chain, const char* rows) {
  case_begin("%s, v%d", what, api);
  claimed_version = 22105;
  env_set("DIAPASON_CHAIN", chain);
  if (rows != NULL) use_policy(rows);
}

static void expect(int api, size_t nodes, struct choice want) {
  struct comm comm = comm_open(api, nodes, 8 * nodes);
  const struct question question = ordinary(ALLREDUCE, 500);
  const struct choice got = decide(&comm, &question);
  CHECK(got.algorithm == want.algorithm && got.protocol == want.protocol, "%d/%d, not %d/%d",
        got.algorithm, got.protocol, want.algorithm, want.protocol);
  CHECK(got.channels == want.channels, "%d channels, not %d", got.channels, want.channels);
  comm_close(&comm);
}

static const struct choice kNothing = {UNDEF, UNDEF, CHANNELS_BEFORE};
static const struct choice kGood = {RING, LL, 3};

/* Without a row for the question, the chained tuner's answer stands. */
static void answer_stands(void) {
  static const int spoken[] = {0, 0, 2, 3, 3, 5, 6, 6}; /* by what the library speaks */
  struct chain_counts* counts = good_counts();
  for (int api = 2; api <= TUNER_NEWEST_API; ++api) {
    begin("its answer stands", api, library("chain_good"), "allreduce,1000,2000,tree,simple,5" ANY);
    memset(counts, 0, sizeof(*counts));
    expect(api, 2, kGood);
    CHECK(counts->last_api == spoken[api], "it was spoken to in v%d", counts->last_api);
    CHECK(counts->inits == 1 && counts->finalizes == 1, "%d inits, %d finalizes", counts->inits,
          counts->finalizes);
    CHECK(counts->last_ranks == 16 && counts->last_nodes == 2, "ranks and nodes are not passed on");
    CHECK(counts->last_comm_id == (api >= 5 ? 0x1234567890abcdefull : 0), "nor is the id");
    CHECK(log_count(NCCL_LOG_WARN, "") == 0, "a warning");
    CHECK(log_count(NCCL_LOG_INFO, "good (v") == 1, "the log does not name it");
    env_set("DIAPASON_POLICY", NULL);
    expect(api, 1, kGood);
    use_policy("allreduce,0,999,tree,simple,5" ANY);
    env_set("DIAPASON_MODE", "observe");
    expect(api, 1, kGood);
  }
}

/* It pushed every other entry to 3.6e9, where the library's search starts: ours must come back. */
static void policy_wins(void) {
  for (int api = 2; api <= TUNER_NEWEST_API; ++api) {
    begin("the policy wins", api, library("chain_good"), "allreduce,0,999,tree,simple,5" ANY);
    expect(api, 1, (struct choice){TREE, SIMPLE, 5});
    env_set("DIAPASON_POLICY", NULL);
    host.pin(RING, SIMPLE, 6);
    expect(api, 1, (struct choice){RING, SIMPLE, 6});
    host.unpin();
  }
  for (int rccl = 0; rccl <= 1; ++rccl) {
    begin(rccl ? "rccl: the entry" : "nccl: the entry", 5, library("chain_good"),
          "allreduce,0,999,tree,simple,5" ANY);
    env_set("DIAPASON_LIBRARY", rccl ? "rccl" : "nccl");
    struct comm comm = comm_open(5, 1, 8);
    struct table table;
    table_typical(&table, ALLREDUCE);
    const float estimate = *table_at(&table, TREE, SIMPLE);
    int channels = 0;
    const struct question question = ordinary(ALLREDUCE, 500);
    ask_table(&comm, &question, &table, &channels);
    CHECK(*table_at(&table, TREE, SIMPLE) == (rccl ? 0.0f : estimate), "it is %g, was %g",
          *table_at(&table, TREE, SIMPLE), estimate);
    comm_close(&comm);
  }
}

/* A row that is not on offer leaves the chained answer as it is. */
static void unavailable_row(void) {
  for (int api = 2; api <= TUNER_NEWEST_API; ++api) {
    begin("a row that is not on offer", api, library("chain_good"),
          "allreduce,0,999,pat,simple,5" ANY);
    expect(api, 1, kGood);
  }
}

/* The chained tuner's count was meant for its own pair. Where the library does not check a count,
 * a row's pair must not inherit it: see rule 6 of the ABI notes. */
static void count_is_not_inherited(void) {
  for (int api = 3; api <= TUNER_NEWEST_API; ++api) {
    begin("its count and collnet", api, library("chain_good"),
          "allreduce,0,999,collnet_direct,simple,-1" ANY);
    expect(api, 2, (struct choice){COLLNET_DIRECT, SIMPLE, 0});
    begin("its count and multi-node nvls", api, library("chain_good"),
          "allreduce,0,999,nvls,simple,-1" ANY);
    expect(api, 2, (struct choice){NVLS, SIMPLE, 0});
  }
}

/* The same where there is no table: collnet_chain is answered, on the chained tuner's count. */
static void count_is_not_inherited_by_pairs(void) {
  begin("its count and collnet", 2, library("chain_good"),
        "allreduce,0,999,collnet_chain,simple,-1" ANY);
  struct comm comm = comm_open(2, 2, 16);
  struct question question = ordinary(ALLREDUCE, 500);
  question.collnet = 1;
  const struct choice got = decide(&comm, &question);
  CHECK(got.algorithm == COLLNET_CHAIN && got.protocol == SIMPLE, "%d/%d", got.algorithm,
        got.protocol);
  CHECK(got.channels == 0, "%d channels", got.channels);
  comm_close(&comm);
}

/* Numbers that we do not know may be known to it: it is asked, and we keep out. */
static void unknown_collectives(void) {
  struct chain_counts* counts = good_counts();
  static const int numbers[] = {-1, 5, 8, 11, 1000};
  for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); ++i) {
    begin("unknown collectives", 5, library("chain_good"), "allreduce,0,999,tree,simple,5" ANY);
    struct comm comm = comm_open(5, 1, 8);
    const struct question question = ordinary(numbers[i], 500);
    const struct choice got = decide(&comm, &question);
    CHECK(counts->last_collective == numbers[i], "it was asked about %d", counts->last_collective);
    CHECK(got.algorithm == RING && got.protocol == LL && got.channels == 3, "its answer is lost");
    comm_close(&comm);
  }
}

static void errors_are_undone(void) {
  for (int api = 2; api <= TUNER_NEWEST_API; ++api) {
    begin("it scribbles and fails", api, library("chain_scribbler"), NULL);
    expect(api, 1, kNothing);
    use_policy("allreduce,0,999,tree,simple,5" ANY);
    expect(api, 1, (struct choice){TREE, SIMPLE, 5});
    env_set("DIAPASON_LIBRARY", "rccl");
    expect(api, 1, (struct choice){TREE, SIMPLE, 5});
  }
}

/* Everything that keeps it from being used: one warning that says what, and the policy works on. */
static void unusable(void) {
  const char* none = "/nowhere/libtuner.so";
  const struct {
    const char* what;
    const char* chain;
    int first;
    int last;
    const char* warning;
  } cases[] = {
      {"a missing file", none, 1, TUNER_NEWEST_API, none},
      {"an unknown short name", "no-such-tuner", 1, TUNER_NEWEST_API, "no-such-tuner"},
      {"a text file", write_text("text.so", "no library\n"), 1, TUNER_NEWEST_API, "text.so"},
      {"itself", g_plugin, 1, TUNER_NEWEST_API, "itself"},
      {"itself, by its name", "libnccl-tuner-diapason.so", 1, TUNER_NEWEST_API, "itself"},
      {"no tuner at all", library("chain_empty"), 1, TUNER_NEWEST_API, "no tuner API"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    for (int api = cases[i].first; api <= cases[i].last; ++api) {
      begin(cases[i].what, api, cases[i].chain, "allreduce,0,999,tree,simple,5" ANY);
      expect(api, 1, (struct choice){TREE, SIMPLE, 5});
      CHECK(log_count(NCCL_LOG_WARN, cases[i].warning) == 1, "no warning says so");
      CHECK(log_count(NCCL_LOG_WARN, "") == 1, "more than one warning");
    }
  }
}

static void does_not_fit(const char* name, int first, int last, const char* warning) {
  for (int api = first; api <= last; ++api) {
    begin(name, api, library(name), "allreduce,0,999,tree,simple,5" ANY);
    expect(api, 1, (struct choice){TREE, SIMPLE, 5});
    CHECK(log_count(NCCL_LOG_WARN, warning) == 1, "no warning says so");
    CHECK(log_count(NCCL_LOG_WARN, name) == 1, "no warning names it");
  }
}

static void one_version_only(void) {
  for (int api = 6; api <= 7; ++api) {
    begin("v6 alone", api, library("chain_v6_only"), NULL);
    expect(api, 1, (struct choice){RING, LL, 0});
  }
  begin("v7 alone", 7, library("chain_v7_only"), NULL);
  expect(7, 1, (struct choice){RING, LL, 0});
}

/* Every number that the library has for this chained tuner is doubled, and no other one. */
static void check_bent(const double* before, const double* after, size_t rows) {
  const size_t latencies = 4 * ALGORITHMS * PROTOCOLS;
  for (size_t i = 0; i < latencies + 5 * rows * 3; ++i) {
    const bool rubin = rows == 5 && i >= latencies && (i - latencies) / 3 % rows == 4;
    CHECK(after[i] == before[i] * (rubin ? 1 : 2), "number %zu was %g and is %g", i, before[i],
          after[i]);
  }
}

static void fill(double* numbers, size_t count) {
  for (size_t i = 0; i < count; ++i) numbers[i] = 1.0 + (double)i;
}

/* A chained tuner changes the library's cost model, in the layout that it knows. */
static void constants_are_converted(void) {
  tuner_constants old;
  tuner_constants old_before;
  begin("changed constants", 6, library("chain_bends"), NULL);
  fill((double*)&old, sizeof(old) / sizeof(double));
  old_before = old;
  struct comm comm = {6, NULL};
  tuner_nvl_domain domain = {1, 8, 8};
  CHECK(host.v6->init(&comm.context, 1, 8, 1, host.logger, &domain, &old) == TUNER_SUCCESS, "v6");
  check_bent((const double*)&old_before, (const double*)&old, 4);
  comm_close(&comm);

  tuner_constants_v7 newer;
  tuner_constants_v7 newer_before;
  begin("changed constants", 7, library("chain_bends"), NULL);
  fill((double*)&newer, sizeof(newer) / sizeof(double));
  newer_before = newer;
  comm.api = 7;
  CHECK(host.v7->init(&comm.context, 1, 8, 1, host.logger, &domain, &newer) == TUNER_SUCCESS, "v7");
  check_bent((const double*)&newer_before, (const double*)&newer, 5);
  comm_close(&comm);

  begin("changed constants, all of them", 7, library("chain_bends_v7"), NULL);
  newer = newer_before;
  CHECK(host.v7->init(&comm.context, 1, 8, 1, host.logger, &domain, &newer) == TUNER_SUCCESS, "v7");
  for (size_t i = 0; i < sizeof(newer) / sizeof(double); ++i) {
    CHECK(((const double*)&newer)[i] == 2 * ((const double*)&newer_before)[i], "number %zu", i);
  }
  comm_close(&comm);
}

/* From 2.31 on a negative number wins where the entry was on offer, and nothing else is read back:
 * the chained answer is what the same tuner would make the library choose, and a row wins over it.
 */
static void negative_answers(void) {
  static const struct {
    int version;
    struct choice alone;
  } libraries[] = {{23007, {PAT, SIMPLE, 0}}, {23102, {NVLS_TREE, SIMPLE, 0}}};
  for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); ++i) {
    begin("negative answers", 6, library("chain_negative"), "allreduce,1000,2000,ring,ll,-1" ANY);
    claimed_version = libraries[i].version;
    expect(6, 1, libraries[i].alone);
    static const char* const rows[] = {"tree,simple", "tree,ll", "ring,ll", "nvls_tree,simple"};
    static const struct choice chosen[] = {
        {TREE, SIMPLE, 0}, {TREE, LL, 0}, {RING, LL, 0}, {NVLS_TREE, SIMPLE, 0}};
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); ++row) {
      char line[80];
      snprintf(line, sizeof(line), "allreduce,0,999,%s,-1" ANY, rows[row]);
      use_policy(line);
      expect(6, 1, chosen[row]);
    }
  }
}

/* What is about no call is not passed on. */
static void no_calls(void) {
  struct chain_counts* counts = good_counts();
  for (int api = 2; api <= TUNER_NEWEST_API; ++api) {
    begin("questions about no call", api, library("chain_good"), NULL);
    struct comm comm = comm_open(api, 1, 8);
    const int before = counts->asked;
    struct question question = ordinary(ALLREDUCE, 500);
    question.pipe_ops = 0;
    const struct choice got = decide(&comm, &question);
    CHECK(got.algorithm == UNDEF && got.channels == CHANNELS_BEFORE, "%d, %d channels",
          got.algorithm, got.channels);
    if (api >= 3) {
      struct table table;
      table_fill(&table, ALGORITHMS, PROTOCOLS, -1.0f);
      int channels = 0;
      question.pipe_ops = 1;
      ask_table(&comm, &question, &table, &channels);
      question.collective = 11;
      ask_table(&comm, &question, &table, &channels);
      CHECK(channels == 0, "%d channels", channels);
    }
    CHECK(counts->asked == before, "it was asked %d times", counts->asked - before);
    comm_close(&comm);
  }
}

static size_t chunk_after(int api, const char* chain) {
  begin("chunk size", api, library(chain), NULL);
  struct comm comm = comm_open(api, 1, 8);
  size_t chunk = 524288;
  CHECK((api == 6 ? host.v6->get_chunk_size : host.v7->get_chunk_size)(
            comm.context, ALLREDUCE, 500, RING, LL, 1, &chunk) == TUNER_SUCCESS,
        "%s: an error", chain);
  comm_close(&comm);
  return chunk;
}

static void chunk_sizes(void) {
  for (int api = 6; api <= 7; ++api) {
    const size_t forwarded = chunk_after(api, "chain_good");
    CHECK(forwarded == 4096, "forwarded: %zu", forwarded);
    const size_t undone = chunk_after(api, "chain_scribbler");
    CHECK(undone == 524288, "undone: %zu", undone);
    const size_t left_out = chunk_after(api, "chain_v6_only");
    CHECK(left_out == 524288, "left out: %zu", left_out);
  }
}

/* "aws-ofi" finds libnccl-tuner-aws-ofi.so, as the library itself has it. */
static void short_name(void) {
  const char* path = getenv("LD_LIBRARY_PATH");
  if (path == NULL || strstr(path, g_folder) == NULL) {
    say("SKIP: short names: LD_LIBRARY_PATH does not hold %s", g_folder);
    return;
  }
  begin("a short name", 5, "chain_good", NULL);
  expect(5, 1, kGood);
}

int main(int count, char** arguments) {
  if (count != 3) give_up("usage: chain PLUGIN FOLDER");
  g_plugin = arguments[1];
  g_folder = arguments[2];
  host_load(g_plugin);
  answer_stands();
  policy_wins();
  unavailable_row();
  count_is_not_inherited();
  count_is_not_inherited_by_pairs();
  unknown_collectives();
  errors_are_undone();
  unusable();
  does_not_fit("chain_good", 1, 1, "v1");
  does_not_fit("chain_refuses", 3, TUNER_NEWEST_API, "failed to start");
  does_not_fit("chain_v6_only", 1, 5, "v6");
  does_not_fit("chain_v7_only", 1, 6, "v7");
  does_not_fit("chain_incomplete", 5, TUNER_NEWEST_API, "callback");
  one_version_only();
  constants_are_converted();
  negative_answers();
  no_calls();
  chunk_sizes();
  short_name();
  return checks_report("chain");
}
