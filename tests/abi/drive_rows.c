/* Which row answers a question, in all versions alike. */
#include "drive.h"
#include "harness.h"

#define RANGE "allreduce,1024,65536,ring,ll,-1" ANY

static const struct scenario kRanges[] = {
    {"inside the range", 1, NEWEST, RANGE, .question = {ALLREDUCE, 4096},
     .expected = {RING, LL, 0}},
    {"its first byte", 1, NEWEST, RANGE, .question = {ALLREDUCE, 1024}, .expected = {RING, LL, 0}},
    {"its last byte", 1, NEWEST, RANGE, .question = {ALLREDUCE, 65536}, .expected = {RING, LL, 0}},
    {"one below", 1, NEWEST, RANGE, .question = {ALLREDUCE, 1023}, .expected = UNTOUCHED},
    {"one above", 1, NEWEST, RANGE, .question = {ALLREDUCE, 65537}, .expected = UNTOUCHED},
    {"nothing to send", 1, NEWEST, RANGE, .question = {ALLREDUCE, 0}, .expected = UNTOUCHED},
    {"as much as there is", 1, NEWEST, "allreduce,1,18446744073709551615,ring,ll,-1" ANY,
     .question = {ALLREDUCE, SIZE_MAX}, .expected = {RING, LL, 0}},
    {"another collective", 1, NEWEST, RANGE, .question = {REDUCE, 4096}, .expected = UNTOUCHED},
    {"no rows at all", 1, NEWEST, "# nothing\n", .question = {ALLREDUCE, 4096},
     .expected = UNTOUCHED},
};

#define ALL_FIVE                                                              \
  "broadcast,0,1000,ring,simple,-1" ANY "reduce,0,1000,ring,ll,-1" ANY        \
  "allgather,0,1000,ring,simple,-1" ANY "reducescatter,0,1000,ring,ll,-1" ANY \
  "allreduce,0,1000,tree,simple,-1" ANY

static const struct scenario kCollectives[] = {
    {"broadcast", 1, NEWEST, ALL_FIVE, .question = {BROADCAST, 100}, .expected = {RING, SIMPLE, 0}},
    {"reduce", 1, NEWEST, ALL_FIVE, .question = {REDUCE, 100}, .expected = {RING, LL, 0}},
    {"allgather", 1, NEWEST, ALL_FIVE, .question = {ALLGATHER, 100}, .expected = {RING, SIMPLE, 0}},
    {"reducescatter", 1, NEWEST, ALL_FIVE, .question = {REDUCESCATTER, 100},
     .expected = {RING, LL, 0}},
    {"allreduce", 1, NEWEST, ALL_FIVE, .question = {ALLREDUCE, 100}, .expected = {TREE, SIMPLE, 0}},
};

static const struct scenario kOrder[] = {
    {"the first of two wins", 1, NEWEST,
     "allreduce,0,1000,ring,ll,-1" ANY "allreduce,0,9000,tree,simple,-1" ANY,
     .question = {ALLREDUCE, 500}, .expected = {RING, LL, 0}},
    {"the second where the first ends", 1, NEWEST,
     "allreduce,0,1000,ring,ll,-1" ANY "allreduce,0,9000,tree,simple,-1" ANY,
     .question = {ALLREDUCE, 1001}, .expected = {TREE, SIMPLE, 0}},
    {"a row that leaves it to the library shields later rows", 1, NEWEST,
     "allreduce,0,1000,-1,-1,-1" ANY "allreduce,0,9000,tree,simple,-1" ANY,
     .question = {ALLREDUCE, 500}, .expected = UNTOUCHED},
    {"eight columns, a header, spellings", 1, NEWEST,
     "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks\r\n"
     "# comment\r\n All_Reduce , 0 , 1000 , RING , Simple , -1 , -1 , -1 # more\r\n",
     .question = {ALLREDUCE, 500}, .expected = {RING, SIMPLE, 0}},
};

#define ON_2X16 "allreduce,0,1000,ring,ll,-1,2,16,-1,-1\n"

static const struct scenario kShapes[] = {
    {"the communicator's shape", 2, NEWEST, ON_2X16, .nodes = 2, .ranks = 16,
     .question = {ALLREDUCE, 500}, .expected = {RING, LL, 0}},
    {"other nodes", 1, NEWEST, ON_2X16, .nodes = 1, .ranks = 16, .question = {ALLREDUCE, 500},
     .expected = UNTOUCHED},
    {"other ranks", 1, NEWEST, ON_2X16, .nodes = 2, .ranks = 8, .question = {ALLREDUCE, 500},
     .expected = UNTOUCHED},
    {"nodes alone", 2, NEWEST, "allreduce,0,1000,ring,ll,-1,2,-1,-1,-1\n", .nodes = 2, .ranks = 999,
     .question = {ALLREDUCE, 500}, .expected = {RING, LL, 0}},
    {"ranks alone", 2, NEWEST, "allreduce,0,1000,ring,ll,-1,-1,16,-1,-1\n", .nodes = 7, .ranks = 16,
     .question = {ALLREDUCE, 500}, .expected = {RING, LL, 0}},
    {"v1 does not say whose shape", 1, 1, ON_2X16, .nodes = 2, .ranks = 16,
     .question = {ALLREDUCE, 500}, .expected = UNTOUCHED},
    {"v1 goes on to rows for any shape", 1, 1, ON_2X16 "allreduce,0,1000,tree,ll,-1" ANY,
     .nodes = 2, .ranks = 16, .question = {ALLREDUCE, 500}, .expected = {TREE, LL, 0}},
    {"v1 is told there is one shape",
     1,
     1,
     ON_2X16,
     {"DIAPASON_SINGLE_SHAPE=1"},
     .nodes = 2,
     .ranks = 16,
     .question = {ALLREDUCE, 500},
     .expected = {RING, LL, 0}},
    {"and it is another",
     1,
     1,
     ON_2X16,
     {"DIAPASON_SINGLE_SHAPE=1"},
     .nodes = 1,
     .ranks = 16,
     .question = {ALLREDUCE, 500},
     .expected = UNTOUCHED},
};

#define FOR_4_OPS "allreduce,0,1000,ring,ll,-1,-1,-1,4,-1\n"
#define REGISTERED "allreduce,0,1000,ring,ll,-1,-1,-1,-1,1\n"
#define REGISTERED_4 "allreduce,0,1000,ring,ll,-1,-1,-1,4,1\n"
#define USE_REGBUFF \
  { "DIAPASON_REGBUFF=1" }

static const struct scenario kConditions[] = {
    {"numPipeOps fits", 1, NEWEST, FOR_4_OPS, .question = {ALLREDUCE, 500, 4},
     .expected = {RING, LL, 0}},
    {"numPipeOps differs", 1, NEWEST, FOR_4_OPS, .question = {ALLREDUCE, 500, 3},
     .expected = UNTOUCHED},
    {"an earlier row without condition wins", 1, NEWEST, "allreduce,0,900,tree,ll,-1" ANY FOR_4_OPS,
     .question = {ALLREDUCE, 500, 4}, .expected = {TREE, LL, 0}},
    {"a later one does not", 1, NEWEST, FOR_4_OPS "allreduce,0,900,tree,ll,-1" ANY,
     .question = {ALLREDUCE, 500, 4}, .expected = {RING, LL, 0}},
    {"regBuff rows are skipped", 1, NEWEST, REGISTERED, .question = {ALLREDUCE, 500, 1, 1},
     .expected = UNTOUCHED},
    {"and later rows answer", 1, NEWEST, REGISTERED "allreduce,0,900,tree,ll,-1" ANY,
     .question = {ALLREDUCE, 500, 1, 1}, .expected = {TREE, LL, 0}},
    {"regBuff rows, allowed", 4, NEWEST, REGISTERED, USE_REGBUFF,
     .question = {ALLREDUCE, 500, 1, 1}, .expected = {RING, LL, 0}},
    {"regBuff differs", 4, NEWEST, REGISTERED, USE_REGBUFF, .question = {ALLREDUCE, 500, 1, 0},
     .expected = UNTOUCHED},
    {"versions that do not tell regBuff", 1, 3, REGISTERED, USE_REGBUFF,
     .question = {ALLREDUCE, 500, 1, 1}, .expected = UNTOUCHED},
    {"both conditions fit", 4, NEWEST, REGISTERED_4, USE_REGBUFF,
     .question = {ALLREDUCE, 500, 4, 1}, .expected = {RING, LL, 0}},
    {"one of both fits", 4, NEWEST, REGISTERED_4, USE_REGBUFF, .question = {ALLREDUCE, 500, 2, 1},
     .expected = UNTOUCHED},
};

static const struct scenario kModes[] = {
    {"observing changes nothing",
     1,
     NEWEST,
     "allreduce,0,1000,ring,ll,4" ANY,
     {"DIAPASON_MODE=observe"},
     22105,
     .question = {ALLREDUCE, 500},
     .expected = UNTOUCHED},
    {"off changes nothing",
     1,
     NEWEST,
     "allreduce,0,1000,ring,ll,4" ANY,
     {"DIAPASON_MODE=off"},
     22105,
     .question = {ALLREDUCE, 500},
     .expected = UNTOUCHED},
    {"static is the default",
     1,
     NEWEST,
     "allreduce,0,1000,ring,ll,4" ANY,
     {"DIAPASON_MODE=static"},
     22105,
     .question = {ALLREDUCE, 500},
     .expected = {RING, LL, 4}},
};

/* Stepping aside is a NULL context, which every version may hand back to us. */
static void off_has_no_context(void) {
  for (int api = 2; api <= TUNER_NEWEST_API; ++api) {
    case_begin("mode off, v%d", api);
    use_policy("allreduce,0,1000,ring,ll,-1" ANY);
    env_set("DIAPASON_MODE", "off");
    struct comm comm = comm_open(api, 1, 8);
    CHECK(comm.context == NULL, "there is a context");
    CHECK(log_count(NCCL_LOG_WARN, "") == 0, "switching it off is nothing to warn about");
    comm_close(&comm);
  }
}

static void skipped_rows_are_named(void) {
  case_begin("a warning for skipped regBuff rows");
  use_policy(REGISTERED);
  struct comm comm = comm_open(5, 1, 8);
  CHECK(log_count(NCCL_LOG_WARN, "DIAPASON_REGBUFF=1") == 1, "no warning");
  comm_close(&comm);
  case_begin("a warning for skipped shape rows");
  use_policy(ON_2X16);
  comm = comm_open(1, 2, 16);
  CHECK(log_count(NCCL_LOG_WARN, "DIAPASON_SINGLE_SHAPE=1") == 1, "no warning");
  comm_close(&comm);
}

/* v1: a second communicator of another shape takes the promise of one shape away. */
static void v1_shapes_differ(void) {
  case_begin("v1, communicators of two shapes");
  use_policy(ON_2X16);
  env_set("DIAPASON_SINGLE_SHAPE", "1");
  struct comm first = comm_open(1, 2, 16);
  struct comm same = comm_open(1, 2, 16);
  const struct question question = ordinary(ALLREDUCE, 500);
  CHECK(decide(&first, &question).algorithm == RING, "two of one shape: the row holds");
  struct comm other = comm_open(1, 1, 8);
  CHECK(decide(&first, &question).algorithm == UNDEF, "two shapes: the library decides");
  CHECK(log_count(NCCL_LOG_WARN, "DIAPASON_SINGLE_SHAPE") == 1, "no warning");
  comm_close(&other);
  comm_close(&same);
  comm_close(&first);
}

void drive_rows(void) {
  RUN(kRanges);
  RUN(kCollectives);
  RUN(kOrder);
  RUN(kShapes);
  RUN(kConditions);
  RUN(kModes);
  off_has_no_context();
  skipped_rows_are_named();
  v1_shapes_differ();
}
