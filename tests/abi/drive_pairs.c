/* API v1 and v2: no table says what works here, and the answer is taken verbatim. */
#include "drive.h"
#include "harness.h"

#define Q_AR .question = {ALLREDUCE, 500}
#define LL128_WORKS \
  { "DIAPASON_LL128=1" }

static const struct scenario kLl128[] = {
    {"ll128 is not known to work", 1, 2, "allreduce,0,999,ring,ll128,-1" ANY, Q_AR,
     .expected = UNTOUCHED},
    {"ll128 with a tree neither", 1, 2, "allreduce,0,999,tree,ll128,-1" ANY, Q_AR,
     .expected = UNTOUCHED},
    {"ll128 works", 1, 2, "allreduce,0,999,ring,ll128,-1" ANY, LL128_WORKS, Q_AR,
     .expected = {RING, LL128, 0}},
    {"ll128 with a tree works", 1, 2, "allreduce,0,999,tree,ll128,-1" ANY, LL128_WORKS, Q_AR,
     .expected = {TREE, LL128, 0}},
    {"where there is a table, it says", 3, NEWEST, "allreduce,0,999,ring,ll128,-1" ANY, Q_AR,
     .expected = {RING, LL128, 0}},
};

#define Q_NVLS .question = {ALLREDUCE, 500, .nvls = 1}
#define Q_COLLNET .question = {ALLREDUCE, 500, .collnet = 1}
#define TWO_NODES .nodes = 2, .ranks = 16

static const struct scenario kSupport[] = {
    {"nvls, supported", 2, 2, "allreduce,0,999,nvls,simple,-1" ANY, Q_NVLS,
     .expected = {NVLS, SIMPLE, 0}},
    {"nvls, not supported", 2, 2, "allreduce,0,999,nvls,simple,-1" ANY, Q_COLLNET,
     .expected = UNTOUCHED},
    {"nvls on two nodes needs more than the flag", 2, 2, "allreduce,0,999,nvls,simple,-1" ANY,
     TWO_NODES, Q_NVLS, .expected = UNTOUCHED},
    {"nvls_tree, supported", 2, 2, "allreduce,0,999,nvls_tree,simple,-1" ANY, TWO_NODES, Q_NVLS,
     .expected = {NVLS_TREE, SIMPLE, 0}},
    {"nvls_tree, not supported", 2, 2, "allreduce,0,999,nvls_tree,simple,-1" ANY, TWO_NODES, Q_AR,
     .expected = UNTOUCHED},
    {"nvls_tree is off on one node", 2, 2, "allreduce,0,999,nvls_tree,simple,-1" ANY, Q_NVLS,
     .expected = UNTOUCHED},
    {"collnet_chain, supported", 2, 2, "allreduce,0,999,collnet_chain,simple,-1" ANY, TWO_NODES,
     Q_COLLNET, .expected = {COLLNET_CHAIN, SIMPLE, 0}},
    {"collnet_chain, not supported", 2, 2, "allreduce,0,999,collnet_chain,simple,-1" ANY, TWO_NODES,
     Q_NVLS, .expected = UNTOUCHED},
    {"collnet on one node", 2, 2, "allreduce,0,999,collnet_chain,simple,-1" ANY, Q_COLLNET,
     .expected = UNTOUCHED},
    {"collnet_direct needs what is not told", 1, 2, "allreduce,0,999,collnet_direct,simple,-1" ANY,
     TWO_NODES, .question = {ALLREDUCE, 500, .collnet = 1, .nvls = 1}, .expected = UNTOUCHED},
    {"pat is newer than these versions", 1, 2, "allgather,0,999,pat,simple,-1" ANY, TWO_NODES,
     .question = {ALLGATHER, 500}, .expected = UNTOUCHED},
    {"v1 does not say how many nodes: nvls", 1, 1, "allreduce,0,999,nvls,simple,-1" ANY, Q_NVLS,
     .expected = UNTOUCHED},
    {"v1: nvls_tree", 1, 1, "allreduce,0,999,nvls_tree,simple,-1" ANY, TWO_NODES, Q_NVLS,
     .expected = UNTOUCHED},
    {"v1: collnet_chain", 1, 1, "allreduce,0,999,collnet_chain,simple,-1" ANY, TWO_NODES, Q_COLLNET,
     .expected = UNTOUCHED},
};

/* What no machine runs must not be answered: nothing would check it. */
static const struct scenario kNeverRun[] = {
    {"broadcast has no tree", 1, NEWEST, "broadcast,0,999,tree,simple,-1" ANY,
     .question = {BROADCAST, 500}, .expected = UNTOUCHED},
    {"reduce has no tree", 1, NEWEST, "reduce,0,999,tree,ll,-1" ANY, .question = {REDUCE, 500},
     .expected = UNTOUCHED},
    {"allgather has no tree", 1, NEWEST, "allgather,0,999,tree,ll,-1" ANY,
     .question = {ALLGATHER, 500}, .expected = UNTOUCHED},
    {"nvls has no ll", 1, NEWEST, "allreduce,0,999,nvls,ll,-1" ANY, Q_NVLS, .expected = UNTOUCHED},
    {"allreduce has no pat", 1, NEWEST, "allreduce,0,999,pat,simple,-1" ANY, Q_AR,
     .expected = UNTOUCHED},
};

static const struct scenario kHalves[] = {
    {"an algorithm alone", 1, 2, "allreduce,0,999,ring,-1,4" ANY, .version = 22105, Q_AR,
     .expected = UNTOUCHED},
    {"a protocol alone", 1, 2, "allreduce,0,999,-1,simple,4" ANY, .version = 22105, Q_AR,
     .expected = UNTOUCHED},
    {"rccl: no tree below 64 bytes",
     1,
     2,
     "allreduce,0,999,tree,simple,-1" ANY,
     {"DIAPASON_LIBRARY=rccl"},
     .question = {ALLREDUCE, 63},
     .expected = UNTOUCHED},
    {"rccl: a tree from 64 bytes on",
     1,
     2,
     "allreduce,0,999,tree,simple,-1" ANY,
     {"DIAPASON_LIBRARY=rccl"},
     .question = {ALLREDUCE, 64},
     .expected = {TREE, SIMPLE, 0}},
};

#define RING_LL "allreduce,0,999,ring,ll,4" ANY

/* The user's own word. From v3 on the table already says what the user excludes. */
static const struct scenario kForced[] = {
    {"NCCL_ALGO", 1, 2, RING_LL, {"NCCL_ALGO=tree"}, 22105, Q_AR, .expected = UNTOUCHED},
    {"NCCL_PROTO", 1, 2, RING_LL, {"NCCL_PROTO=simple"}, 22105, Q_AR, .expected = UNTOUCHED},
    {"NCCL_ALGO, set to nothing",
     1,
     2,
     RING_LL,
     {"NCCL_ALGO="},
     22105,
     Q_AR,
     .expected = {RING, LL, 4}},
    {"NCCL_ALGO with a table",
     3,
     NEWEST,
     RING_LL,
     {"NCCL_ALGO=tree"},
     22809,
     Q_AR,
     .expected = {RING, LL, 4}},
};

static void forcing_is_named(void) {
  for (int api = 1; api <= 2; ++api) {
    case_begin("a warning when NCCL_ALGO is set, v%d", api);
    use_policy(RING_LL);
    env_set("NCCL_ALGO", "ring");
    struct comm comm = comm_open(api, 1, 8);
    CHECK(log_count(NCCL_LOG_WARN, "NCCL_ALGO") == 1, "no warning");
    comm_close(&comm);
  }
}

/* The outputs are not ours to clear either: another value than UNDEF comes back as it went in. */
static void outputs_stay(void) {
  for (int api = 1; api <= 2; ++api) {
    case_begin("no match, v%d", api);
    use_policy(RING_LL);
    struct comm comm = comm_open(api, 1, 8);
    int algorithm = 41;
    int protocol = 42;
    int channels = 43;
    const struct question question = ordinary(ALLREDUCE, 1000);
    CHECK(ask_pair(&comm, &question, &algorithm, &protocol, &channels) == TUNER_SUCCESS, "error");
    CHECK(algorithm == 41 && protocol == 42 && channels == 43, "%d %d %d", algorithm, protocol,
          channels);
    comm_close(&comm);
  }
}

void drive_pairs(void) {
  RUN(kLl128);
  RUN(kSupport);
  RUN(kNeverRun);
  RUN(kHalves);
  RUN(kForced);
  forcing_is_named();
  outputs_stay();
}
