/* A vendor's tuner as one would chain it: always ring/ll on three channels, in API v2, v3, v5 and
 * v6. Like the well-behaved ones it disables an entry by making it expensive. v4 is left out: a
 * library that speaks v4 must reach v3. Counts what it is asked, for chain.c. */
#include <stdlib.h>

#include "tuner_abi.h"

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
struct chain_counts chain_counts;

enum { CHOSEN_CHANNELS = 3, CHOSEN_CHUNK = 4096 };

static int start(void** context, size_t ranks, size_t nodes, uint64_t comm_id) {
  ++chain_counts.inits;
  chain_counts.last_ranks = ranks;
  chain_counts.last_nodes = nodes;
  chain_counts.last_comm_id = comm_id;
  *context = malloc(1); /* freed in stop: a leak checker sees a context that got lost */
  return TUNER_SUCCESS;
}

static int stop(void* context) {
  ++chain_counts.finalizes;
  free(context);
  return TUNER_SUCCESS;
}

static void note(int api, int collective) {
  ++chain_counts.asked;
  chain_counts.last_api = api;
  chain_counts.last_collective = collective;
}

static int choose(float** table, int algorithms, int protocols, int* channels) {
  float* cells = (float*)(void*)table;
  for (int i = 0; i < algorithms * protocols; ++i) {
    if (cells[i] >= 0.0f && i != RING * protocols + LL) cells[i] = 3600000000.0f;
  }
  *channels = CHOSEN_CHANNELS;
  return TUNER_SUCCESS;
}

static int init_old(size_t ranks, size_t nodes, tuner_logger logger, void** context) {
  (void)logger;
  return start(context, ranks, nodes, 0);
}

static int init_new(void** context, uint64_t comm_id, size_t ranks, size_t nodes,
                    tuner_logger logger, tuner_nvl_domain* domain, tuner_constants* constants) {
  (void)logger;
  if (domain == NULL || constants == NULL) return TUNER_INTERNAL_ERROR; /* must be passed on */
  return start(context, ranks, nodes, comm_id);
}

static int ask_v2(void* context, int collective, size_t bytes, int collnet, int nvls, int pipe_ops,
                  int* algorithm, int* protocol, int* channels) {
  (void)context, (void)bytes, (void)collnet, (void)nvls, (void)pipe_ops;
  note(2, collective);
  *algorithm = RING;
  *protocol = LL;
  *channels = CHOSEN_CHANNELS;
  return TUNER_SUCCESS;
}

static int ask_v3(void* context, int collective, size_t bytes, int pipe_ops, float** table,
                  int algorithms, int protocols, int* channels) {
  (void)context, (void)bytes, (void)pipe_ops;
  note(3, collective);
  return choose(table, algorithms, protocols, channels);
}

static int ask_v5(void* context, int collective, size_t bytes, int pipe_ops, float** table,
                  int algorithms, int protocols, int reg_buff, int* channels) {
  (void)context, (void)bytes, (void)pipe_ops, (void)reg_buff;
  note(5, collective);
  return choose(table, algorithms, protocols, channels);
}

static int ask_v6(void* context, int collective, size_t bytes, int pipe_ops, float** table,
                  int algorithms, int protocols, int reg_buff, int* channels) {
  (void)context, (void)bytes, (void)pipe_ops, (void)reg_buff;
  note(6, collective);
  return choose(table, algorithms, protocols, channels);
}

static int chunk_v6(void* context, int collective, size_t bytes, int algorithm, int protocol,
                    int channels, size_t* chunk_size) {
  (void)context, (void)collective, (void)bytes, (void)algorithm, (void)protocol, (void)channels;
  *chunk_size = CHOSEN_CHUNK;
  return TUNER_SUCCESS;
}

const tuner_v2 ncclTunerPlugin_v2 = {"good", init_old, ask_v2, stop};
const tuner_v3 ncclTunerPlugin_v3 = {"good", init_old, ask_v3, stop};
const tuner_v5 ncclTunerPlugin_v5 = {"good", init_new, ask_v5, stop};
const tuner_v6 ncclTunerPlugin_v6 = {"good", init_new, ask_v6, stop, chunk_v6};
