/* How an answer is written into the cost table of API v3 and later, and what may never change. */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "drive.h"
#include "harness.h"

/* The plugin counts entries from here on as pushed away by somebody, not as on offer; below
 * 3.6e9, where the library's own search starts. */
static const float kPushedAway = 1e9f;

static bool on_offer(float cost) { return cost >= 0.0f && cost < kPushedAway; }

static bool same_bits(float one, float other) { return memcmp(&one, &other, sizeof(one)) == 0; }

/* One row per pair, each for sizes of its own: the size of a question selects the pair. */
static size_t size_for(int algorithm, int protocol) {
  return 1000u * (size_t)(1 + algorithm * PROTOCOLS + protocol);
}

static void use_policy_of_all_pairs(void) {
  static const char* const collectives[] = {"broadcast", "reduce", "allgather", "reducescatter",
                                            "allreduce"};
  static const char* const algorithms[] = {
      "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
  static const char* const protocols[] = {"ll", "ll128", "simple"};
  char rows[COLLECTIVES * ALGORITHMS * PROTOCOLS * 80];
  size_t length = 0;
  for (int c = 0; c < COLLECTIVES; ++c) {
    for (int a = 0; a < ALGORITHMS; ++a) {
      for (int p = 0; p < PROTOCOLS; ++p) {
        length += (size_t)snprintf(rows + length, sizeof(rows) - length, "%s,%zu,%zu,%s,%s,-1" ANY,
                                   collectives[c], size_for(a, p), size_for(a, p) + 9,
                                   algorithms[a], protocols[p]);
      }
    }
  }
  use_policy(rows);
}

/* Costs of every kind a table has been seen to hold. */
static float any_cost(uint64_t* seed) {
  static const float odd[] = {-1.0f,  -1024.0f, -0.5f,    -FLT_MAX, -INFINITY,    NAN,     1e9f,
                              3.6e9f, FLT_MAX,  INFINITY, 0.0f,     999999936.0f, FLT_MIN, -0.0f};
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  const uint64_t draw = *seed >> 33;
  if (draw % 3 == 0) return odd[draw / 3 % (sizeof(odd) / sizeof(odd[0]))];
  return 1.0f + (float)(draw % 100000) / 7.0f;
}

/* The plugin takes v7, and a claimed 2.31, for a library that guards ring by its estimate alone. */
static bool g_by_estimate;

static bool ring_is_guarded(struct table* table) {
  if (g_by_estimate) {
    float others = kPushedAway;
    float ring = kPushedAway;
    for (int i = 0; i < table->algorithms * table->protocols; ++i) {
      if (!on_offer(table->cells[i])) continue;
      float* best = i / table->protocols == RING ? &ring : &others;
      if (table->cells[i] < *best) *best = table->cells[i];
    }
    return others > 0.0f && others < kPushedAway && ring >= 256.0f * others;
  }
  for (int p = 0; p < table->protocols; ++p) {
    if (*table_at(table, RING, p) <= -1000.0f) return true;
  }
  return false;
}

/* What holds for a table after the plugin has chosen this pair in it. */
static void check_chosen(bool rccl, struct table* before, struct table* after, int algorithm,
                         int protocol) {
  const int chosen = algorithm * after->protocols + protocol;
  int winner = UNDEF;
  int winner_protocol = UNDEF;
  table_winner(before, after, &winner, &winner_protocol);
  CHECK(winner == algorithm && winner_protocol == protocol, "the library takes %d/%d, not %d/%d",
        winner, winner_protocol, algorithm, protocol);
  CHECK(rccl ? same_bits(after->cells[chosen], 0.0f)
             : same_bits(after->cells[chosen], before->cells[chosen]),
        "the chosen entry is %g, was %g", after->cells[chosen], before->cells[chosen]);
  for (int i = 0; i < MOST_CELLS; ++i) {
    const bool outside = i >= after->algorithms * after->protocols;
    if (outside || !(before->cells[i] >= 0.0f)) {
      CHECK(same_bits(after->cells[i], before->cells[i]), "cell %d was %g and is %g", i,
            before->cells[i], after->cells[i]);
    } else if (i != chosen) {
      CHECK(after->cells[i] > after->cells[chosen] && after->cells[i] >= 0.0f,
            "cell %d is %g, the chosen one %g", i, after->cells[i], after->cells[chosen]);
    }
  }
  CHECK(memcmp(before->margin_before, after->margin_before, sizeof(after->margin_before)) == 0 &&
            memcmp(before->margin_after, after->margin_after, sizeof(after->margin_after)) == 0,
        "the plugin wrote outside the table");
}

static void ask_one_pair(const struct comm* comm, bool rccl, struct table* before, int collective,
                         int algorithm, int protocol) {
  struct table after = *before;
  int channels = CHANNELS_BEFORE;
  const struct question question = ordinary(collective, size_for(algorithm, protocol));
  CHECK(ask_table(comm, &question, &after, &channels) == TUNER_SUCCESS, "an error");
  const bool offered = algorithm < before->algorithms && protocol < before->protocols &&
                       on_offer(*table_at(before, algorithm, protocol)) &&
                       !(algorithm == RING && ring_is_guarded(before));
  if (offered) {
    check_chosen(rccl, before, &after, algorithm, protocol);
  } else {
    CHECK(table_same(&after, before), "%d/%d is not on offer, and the table changed", algorithm,
          protocol);
  }
  CHECK(channels == CHANNELS_BEFORE, "channels became %d", channels);
}

static void ask_all_pairs(const struct comm* comm, bool rccl, struct table* table, int collective) {
  for (int a = 0; a < ALGORITHMS; ++a) {
    for (int p = 0; p < PROTOCOLS; ++p) ask_one_pair(comm, rccl, table, collective, a, p);
  }
}

/* Tables of random costs and of every width that exists. */
static void random_tables(bool rccl) {
  static const int shapes[][2] = {{7, 3}, {6, 3}, {7, 4}, {6, 4}, {9, 5}, {2, 2}};
  uint64_t seed = 20240601;
  for (int api = 3; api <= TUNER_NEWEST_API; ++api) {
    case_begin("random tables, %s, v%d", rccl ? "rccl" : "nccl", api);
    env_set("DIAPASON_LIBRARY", rccl ? "rccl" : "nccl");
    use_policy_of_all_pairs();
    struct comm comm = comm_open(api, 1, 8);
    g_by_estimate = api >= 7;
    for (int round = 0; round < 60; ++round) {
      struct table table;
      table_fill(&table, shapes[round % 6][0], shapes[round % 6][1], 0.0f);
      for (int i = 0; i < table.algorithms * table.protocols; ++i) table.cells[i] = any_cost(&seed);
      ask_all_pairs(&comm, rccl, &table, round % COLLECTIVES);
    }
    comm_close(&comm);
  }
  g_by_estimate = false;
}

/* Tables where nothing, or only one thing, is on offer. */
static void bare_tables(bool rccl) {
  static const float unavailable[] = {-1.0f, -1024.0f, NAN, -INFINITY, 3.6e9f, INFINITY};
  case_begin("bare tables, %s", rccl ? "rccl" : "nccl");
  env_set("DIAPASON_LIBRARY", rccl ? "rccl" : "nccl");
  use_policy_of_all_pairs();
  struct comm comm = comm_open(6, 1, 8);
  for (size_t i = 0; i < sizeof(unavailable) / sizeof(unavailable[0]); ++i) {
    struct table table;
    table_fill(&table, ALGORITHMS, PROTOCOLS, unavailable[i]);
    ask_all_pairs(&comm, rccl, &table, ALLREDUCE);
    *table_at(&table, TREE, SIMPLE) = 12.5f;
    ask_all_pairs(&comm, rccl, &table, ALLREDUCE);
  }
  comm_close(&comm);
}

/* A row that names half a pair stands for the cheapest entry with it. */
static const struct scenario kHalfPairs[] = {
    {"an algorithm alone", 3, NEWEST, "allreduce,0,999,ring,-1,-1" ANY,
     .question = {ALLREDUCE, 500}, .expected = {RING, LL, 0}},
    {"a protocol alone", 3, NEWEST, "allreduce,0,999,-1,simple,-1" ANY,
     .question = {ALLREDUCE, 500}, .expected = {TREE, SIMPLE, 0}},
    {"an algorithm that is not on offer", 3, NEWEST, "allreduce,0,999,pat,-1,-1" ANY,
     .question = {ALLREDUCE, 500}, .expected = UNTOUCHED},
    {"rccl: an algorithm alone",
     3,
     NEWEST,
     "allreduce,0,999,ring,-1,-1" ANY,
     {"DIAPASON_LIBRARY=rccl"},
     .question = {ALLREDUCE, 500},
     .expected = {RING, LL, 0}},
    {"rccl: no tree below 64 bytes",
     3,
     NEWEST,
     "allreduce,0,999,tree,simple,-1" ANY,
     {"DIAPASON_LIBRARY=rccl"},
     .question = {ALLREDUCE, 63},
     .expected = UNTOUCHED},
    {"rccl: a tree from 64 bytes on",
     3,
     NEWEST,
     "allreduce,0,999,tree,simple,-1" ANY,
     {"DIAPASON_LIBRARY=rccl"},
     .question = {ALLREDUCE, 64},
     .expected = {TREE, SIMPLE, 0}},
    {"nccl: trees of any size", 3, NEWEST, "allreduce,0,999,tree,simple,-1" ANY,
     .question = {ALLREDUCE, 63}, .expected = {TREE, SIMPLE, 0}},
};

/* Dimensions no library has sent yet, and nothing where the table should be. */
static void impossible_tables(void) {
  case_begin("impossible tables");
  use_policy_of_all_pairs();
  struct comm comm = comm_open(5, 1, 8);
  const int shapes[][2] = {{0, 3}, {7, 0}, {-1, 3}, {7, -7}, {1 << 30, 3}, {7, 1 << 30}};
  struct table table;
  table_fill(&table, ALGORITHMS, PROTOCOLS, 10.0f);
  const struct table before = table;
  const struct question question = ordinary(ALLREDUCE, size_for(RING, LL));
  for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); ++i) {
    int channels = 5;
    CHECK(host.v5->get_coll_info(comm.context, question.collective, question.bytes, 1,
                                 (float**)(void*)table.cells, shapes[i][0], shapes[i][1], 0,
                                 &channels) == TUNER_SUCCESS,
          "an error");
    CHECK(table_same(&table, &before) && channels == 5, "%d x %d: something changed", shapes[i][0],
          shapes[i][1]);
  }
  int channels = 5;
  CHECK(host.v5->get_coll_info(comm.context, ALLREDUCE, question.bytes, 1, NULL, 7, 3, 0,
                               &channels) == TUNER_SUCCESS &&
            channels == 5,
        "no table");
  CHECK(host.v5->get_coll_info(comm.context, ALLREDUCE, question.bytes, 1,
                               (float**)(void*)table.cells, 7, 3, 0, NULL) == TUNER_SUCCESS,
        "no channels");
  comm_close(&comm);
}

void drive_tables(void) {
  random_tables(false);
  random_tables(true);
  bare_tables(false);
  bare_tables(true);
  RUN(kHalfPairs);
  impossible_tables();
}
