/* When a channel count is passed on. The library does not check it for CollNet, for multi-node NVLS
 * and, from 2.29 on, for allgather: a count that is too large there is a crash. */
#include "drive.h"
#include "harness.h"

#define Q_AR .question = {ALLREDUCE, 500}
#define Q_AG .question = {ALLGATHER, 500}

static const struct scenario kCounts[] = {
    {"a count", 3, NEWEST, "allreduce,0,999,ring,ll,4" ANY, Q_AR, .expected = {RING, LL, 4}},
    {"-1 leaves it", 3, NEWEST, "allreduce,0,999,ring,ll,-1" ANY, Q_AR, .expected = {RING, LL, 0}},
    {"0 leaves it", 3, NEWEST, "allreduce,0,999,ring,ll,0" ANY, Q_AR, .expected = {RING, LL, 0}},
    {"NCCL's most", 3, NEWEST, "allreduce,0,999,ring,ll,64" ANY, Q_AR, .expected = {RING, LL, 64}},
    {"beyond: the file is refused", 1, NEWEST, "allreduce,0,999,ring,ll,65" ANY, Q_AR,
     .expected = UNTOUCHED},
    {"a count and no pair", 3, NEWEST, "allreduce,0,999,-1,-1,4" ANY, Q_AR,
     .expected = {UNDEF, UNDEF, 4}},
    {"half a pair", 3, NEWEST, "allreduce,0,999,-1,simple,4" ANY, Q_AR,
     .expected = {TREE, SIMPLE, 4}},
    {"a pair that is not on offer", 3, NEWEST, "allreduce,0,999,pat,simple,4" ANY, Q_AR,
     .expected = UNTOUCHED},
};

#define ON_RCCL \
  { "DIAPASON_LIBRARY=rccl" }

static const struct scenario kRcclCounts[] = {
    {"RCCL's most", 3, NEWEST, "allreduce,0,999,ring,ll,127" ANY, ON_RCCL, Q_AR,
     .expected = {RING, LL, 127}},
    {"beyond: the file is refused", 1, NEWEST, "allreduce,0,999,ring,ll,128" ANY, ON_RCCL, Q_AR,
     .expected = UNTOUCHED},
    {"RCCL's trees have 64", 3, NEWEST, "allreduce,0,999,tree,ll,127" ANY, ON_RCCL, Q_AR,
     .expected = {TREE, LL, 64}},
    {"the header may say rccl", 3, NEWEST,
     "# diapason: library=rccl\nallreduce,0,999,ring,ll,100" ANY, ON_RCCL, Q_AR,
     .expected = {RING, LL, 100}},
};

static const struct scenario kUnchecked[] = {
    {"collnet_direct", 3, NEWEST, "allreduce,0,999,collnet_direct,simple,8" ANY, Q_AR,
     .expected = {COLLNET_DIRECT, SIMPLE, 0}},
    {"collnet_chain", 3, NEWEST, "allreduce,0,999,collnet_chain,simple,8" ANY, Q_AR,
     .expected = {COLLNET_CHAIN, SIMPLE, 0}},
    {"collnet on many nodes", 3, NEWEST, "allreduce,0,999,collnet_chain,simple,8" ANY, .nodes = 4,
     .ranks = 32, Q_AR, .expected = {COLLNET_CHAIN, SIMPLE, 0}},
    {"nvls on one node", 3, NEWEST, "allreduce,0,999,nvls,simple,8" ANY, .nodes = 1, .ranks = 8,
     Q_AR, .expected = {NVLS, SIMPLE, 8}},
    {"nvls on two nodes", 3, NEWEST, "allreduce,0,999,nvls,simple,8" ANY, .nodes = 2, .ranks = 16,
     Q_AR, .expected = {NVLS, SIMPLE, 0}},
    {"nvls_tree on two nodes", 3, NEWEST, "allreduce,0,999,nvls_tree,simple,8" ANY, .nodes = 2,
     .ranks = 16, Q_AR, .expected = {NVLS_TREE, SIMPLE, 8}},
    {"rccl: collnet", 3, NEWEST, "allreduce,0,999,collnet_chain,simple,8" ANY, ON_RCCL, Q_AR,
     .expected = {COLLNET_CHAIN, SIMPLE, 0}},
};

#define AG_8 "allgather,0,999,ring,simple,8" ANY
#define AG_1 "allgather,0,999,ring,simple,1" ANY

static const struct scenario kAllGather[] = {
    {"allgather, version unknown", 5, NEWEST, AG_8, Q_AG, .expected = {RING, SIMPLE, 0}},
    {"allgather, 2.28.9", 5, NEWEST, AG_8, .version = 22809, Q_AG, .expected = {RING, SIMPLE, 8}},
    {"allgather, 2.29.2", 5, NEWEST, AG_8, .version = 22902, Q_AG, .expected = {RING, SIMPLE, 0}},
    {"allgather, 2.30.7", 5, NEWEST, AG_8, .version = 23007, Q_AG, .expected = {RING, SIMPLE, 0}},
    {"allgather, an old API", 3, 4, AG_8, Q_AG, .expected = {RING, SIMPLE, 8}},
    {"allgather, the fusion is off",
     5,
     NEWEST,
     AG_8,
     {"NCCL_ALLGATHERV_ENABLE=0"},
     23007,
     Q_AG,
     .expected = {RING, SIMPLE, 8}},
    {"allgather, the fusion is on",
     5,
     NEWEST,
     AG_8,
     {"NCCL_ALLGATHERV_ENABLE=1"},
     23007,
     Q_AG,
     .expected = {RING, SIMPLE, 0}},
    {"allgather, the user knows",
     5,
     NEWEST,
     AG_8,
     {"DIAPASON_ALLGATHER_CHANNELS=1"},
     23007,
     Q_AG,
     .expected = {RING, SIMPLE, 8}},
    {"allgather, one channel always exists", 5, NEWEST, AG_1, .version = 23007, Q_AG,
     .expected = {RING, SIMPLE, 1}},
    {"allgather, RCCL's fusion is off", 5, NEWEST, AG_8, ON_RCCL, 23007, Q_AG,
     .expected = {RING, SIMPLE, 8}},
    {"allgather, unless turned on",
     5,
     NEWEST,
     AG_8,
     {"DIAPASON_LIBRARY=rccl", "NCCL_ALLGATHERV_ENABLE=1"},
     23007,
     Q_AG,
     .expected = {RING, SIMPLE, 0}},
    {"other collectives are not concerned", 5, NEWEST, "reducescatter,0,999,ring,ll,8" ANY,
     .version = 23007, .question = {REDUCESCATTER, 500}, .expected = {RING, LL, 8}},
};

#define PAIR_4 "allreduce,0,999,ring,ll,4" ANY
#define COUNT_4 "allreduce,0,999,-1,-1,4" ANY

/* Before 2.20 a pair's count is not checked; of an unknown version nothing is known. */
static const struct scenario kPairCounts[] = {
    {"a pair's count, 2.21.5", 1, 2, PAIR_4, .version = 22105, Q_AR, .expected = {RING, LL, 4}},
    {"a pair's count, 2.20.3", 1, 2, PAIR_4, .version = 22003, Q_AR, .expected = {RING, LL, 4}},
    {"a pair's count, 2.19.4", 1, 2, PAIR_4, .version = 21904, Q_AR, .expected = {RING, LL, 0}},
    {"a pair's count, unknown version", 1, 2, PAIR_4, Q_AR, .expected = {RING, LL, 0}},
    {"a count alone", 1, 2, COUNT_4, .version = 22105, Q_AR, .expected = {UNDEF, UNDEF, 4}},
    {"a count alone might meet nvls", 1, 2, COUNT_4, .version = 22105,
     .question = {ALLREDUCE, 500, .nvls = 1}, .expected = UNTOUCHED},
    {"a count alone might meet collnet", 1, 2, COUNT_4, .version = 22105,
     .question = {ALLREDUCE, 500, .collnet = 1}, .expected = UNTOUCHED},
    {"collnet's pair", 2, 2, "allreduce,0,999,collnet_chain,simple,4" ANY, .version = 22105,
     .nodes = 2, .ranks = 16, .question = {ALLREDUCE, 500, .collnet = 1},
     .expected = {COLLNET_CHAIN, SIMPLE, 0}},
    {"nvls on one node", 2, 2, "allreduce,0,999,nvls,simple,4" ANY, .version = 22105,
     .question = {ALLREDUCE, 500, .nvls = 1}, .expected = {NVLS, SIMPLE, 4}},
};

/* A count without a pair meets whatever the library finds cheapest. */
static void count_meets_the_cheapest(void) {
  static const struct {
    int algorithm;
    size_t nodes;
    int expected;
  } cases[] = {{RING, 2, 8}, {COLLNET_DIRECT, 2, 0}, {COLLNET_CHAIN, 2, 0},
               {NVLS, 1, 8}, {NVLS, 2, 0},           {NVLS_TREE, 2, 8}};
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    case_begin("a count alone, %d is cheapest on %zu nodes", cases[i].algorithm, cases[i].nodes);
    use_policy("allreduce,0,999,-1,-1,8" ANY);
    struct comm comm = comm_open(6, cases[i].nodes, 16);
    struct table table;
    table_typical(&table, ALLREDUCE);
    *table_at(&table, cases[i].algorithm, SIMPLE) = 1.0f;
    const struct table before = table;
    int channels = CHANNELS_BEFORE;
    const struct question question = ordinary(ALLREDUCE, 500);
    CHECK(ask_table(&comm, &question, &table, &channels) == TUNER_SUCCESS, "an error");
    CHECK(channels == cases[i].expected, "%d channels, not %d", channels, cases[i].expected);
    CHECK(table_same(&table, &before), "the table changed");
    comm_close(&comm);
  }
}

static void dropped_counts_are_named(void) {
  case_begin("a warning for allgather's counts");
  use_policy(AG_8 AG_1);
  claimed_version = 23007;
  struct comm comm = comm_open(6, 1, 8);
  CHECK(log_count(NCCL_LOG_WARN, "NCCL_ALLGATHERV_ENABLE=0") == 1, "no warning");
  CHECK(log_count(NCCL_LOG_WARN, "1 row ") == 1, "one channel is no reason to warn");
  comm_close(&comm);
}

void drive_channels(void) {
  RUN(kCounts);
  RUN(kRcclCounts);
  RUN(kUnchecked);
  RUN(kAllGather);
  RUN(kPairCounts);
  count_meets_the_cheapest();
  dropped_counts_are_named();
}
