/* A tuner whose answers are pseudo-random, and depend on everything that it is told: each
 * question's arguments and table, the communicator, the library's cost model, and the number of
 * questions before. A question that is changed, dropped or asked twice on its way changes all later
 * answers.
 *
 * With CHAINED_IN_NETWORK it sits in a network plugin and offers v2, v3 and v6, as aws-ofi-nccl
 * does. */
#include <stdlib.h>
#include <string.h>

#include "tuner_abi.h"

struct state {
  uint64_t seed;
  uint64_t questions;
};

/* FNV-1a: what is told, byte by byte. */
static uint64_t mix(uint64_t hash, const void* data, size_t size) {
  const unsigned char* bytes = data;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 1099511628211ull;
  return hash;
}

static uint64_t mix_number(uint64_t hash, uint64_t number) {
  return mix(hash, &number, sizeof(number));
}

static uint64_t next(uint64_t* hash) {
  *hash = mix_number(*hash, 0x9e3779b97f4a7c15ull);
  return *hash >> 16;
}

static int start(void** context, uint64_t seed) {
  struct state* state = malloc(sizeof(*state));
  if (state == NULL) return TUNER_INTERNAL_ERROR;
  state->seed = seed;
  state->questions = 0;
  *context = state;
  return TUNER_SUCCESS;
}

static int stop(void* context) {
  free(context);
  return TUNER_SUCCESS;
}

/* What every version is told about a question. */
static uint64_t question(void* context, int collective, size_t bytes, int pipe_ops) {
  struct state* state = context;
  uint64_t hash = mix_number(state->seed, ++state->questions);
  hash = mix_number(hash, (uint64_t)collective);
  hash = mix_number(hash, bytes);
  return mix_number(hash, (uint64_t)pipe_ops);
}

static void answer_channels(uint64_t* hash, int* channels) {
  *hash = mix_number(*hash, (uint64_t)*channels);
  if (next(hash) % 3 == 0) *channels = (int)(next(hash) % 64) + 1;
}

/* Bad manners are in it: values below 0, and values in entries that were not on offer. */
static int answer_table(uint64_t hash, float** table, int algorithms, int protocols,
                        int* channels) {
  float* cells = (float*)(void*)table;
  const int count = algorithms * protocols;
  hash = mix(hash, cells, (size_t)count * sizeof(float));
  hash = mix_number(hash, (uint64_t)algorithms * 1000 + (uint64_t)protocols);
  answer_channels(&hash, channels);
  for (int i = 0; i < count; ++i) {
    const uint64_t what = next(&hash) % 8;
    if (what == 0) cells[i] = (float)(next(&hash) % 100000) / 7.0f;
    if (what == 1) cells[i] = 0.0f;
    if (what == 2) cells[i] = 3600000000.0f;
    if (what == 3 && next(&hash) % 8 == 0) cells[i] = -1.0f;
  }
  return TUNER_SUCCESS;
}

static int init_v2(size_t ranks, size_t nodes, tuner_logger logger, void** context) {
  (void)logger;
  return start(context, mix_number(mix_number(1, ranks), nodes));
}

static int ask_v2(void* context, int collective, size_t bytes, int collnet, int nvls, int pipe_ops,
                  int* algorithm, int* protocol, int* channels) {
  uint64_t hash = question(context, collective, bytes, pipe_ops);
  hash = mix_number(hash, (uint64_t)collnet * 2 + (uint64_t)nvls);
  hash = mix_number(hash, (uint64_t)(*algorithm + 1) * 16 + (uint64_t)(*protocol + 1));
  answer_channels(&hash, channels);
  if (next(&hash) % 2 == 0) {
    *algorithm = (int)(next(&hash) % ALGORITHMS_BEFORE_PAT);
    *protocol = (int)(next(&hash) % PROTOCOLS);
  }
  return TUNER_SUCCESS;
}

static int ask_v3(void* context, int collective, size_t bytes, int pipe_ops, float** table,
                  int algorithms, int protocols, int* channels) {
  return answer_table(question(context, collective, bytes, pipe_ops), table, algorithms, protocols,
                      channels);
}

static int ask_v4(void* context, int collective, size_t bytes, int pipe_ops, float** table,
                  int algorithms, int protocols, int reg_buff, int* channels) {
  const uint64_t hash =
      mix_number(question(context, collective, bytes, pipe_ops), (uint64_t)reg_buff);
  return answer_table(hash, table, algorithms, protocols, channels);
}

/* Changes the cost model as well, which is allowed here. */
static int init_v5(void** context, uint64_t comm_id, size_t ranks, size_t nodes,
                   tuner_logger logger, tuner_nvl_domain* domain, tuner_constants* constants) {
  (void)logger;
  uint64_t hash = mix_number(mix_number(mix_number(1, ranks), nodes), comm_id);
  hash = mix(hash, domain, sizeof(*domain));
  hash = mix(hash, constants, sizeof(*constants));
  constants->base_latencies[RING][SIMPLE] = (double)(next(&hash) % 1000) / 3.0;
  constants->nvls_tree_most_bandwidth[3][2] = (double)(next(&hash) % 1000) / 3.0;
  return start(context, hash);
}

#ifndef CHAINED_IN_NETWORK
static int init_v7(void** context, uint64_t comm_id, size_t ranks, size_t nodes,
                   tuner_logger logger, tuner_nvl_domain* domain, tuner_constants_v7* constants) {
  (void)logger;
  uint64_t hash = mix_number(mix_number(mix_number(1, ranks), nodes), comm_id);
  hash = mix(hash, domain, sizeof(*domain));
  hash = mix(hash, constants, sizeof(*constants));
  constants->ring_ll128_most_bandwidth[4][1] = (double)(next(&hash) % 1000) / 3.0;
  constants->nvls_tree_most_bandwidth[4][2] = (double)(next(&hash) % 1000) / 3.0;
  return start(context, hash);
}
#endif

static int chunk_v6(void* context, int collective, size_t bytes, int algorithm, int protocol,
                    int channels, size_t* chunk_size) {
  uint64_t hash = question(context, collective, bytes, channels);
  hash = mix_number(hash, (uint64_t)algorithm * 16 + (uint64_t)protocol);
  hash = mix_number(hash, *chunk_size);
  if (next(&hash) % 4 != 0) *chunk_size = (size_t)(next(&hash) % 4096 + 1) * 512;
  return TUNER_SUCCESS;
}

const tuner_v2 ncclTunerPlugin_v2 = {"random", init_v2, ask_v2, stop};
const tuner_v3 ncclTunerPlugin_v3 = {"random", init_v2, ask_v3, stop};
const tuner_v6 ncclTunerPlugin_v6 = {"random", init_v5, ask_v4, stop, chunk_v6};

#ifdef CHAINED_IN_NETWORK
const char* const ncclNetPlugin_v10 = "a network plugin that moves nothing";
#else
const tuner_v4 ncclTunerPlugin_v4 = {"random", init_v2, ask_v4, stop};
const tuner_v5 ncclTunerPlugin_v5 = {"random", init_v5, ask_v4, stop};
const tuner_v7 ncclTunerPlugin_v7 = {"random", init_v7, ask_v4, stop, chunk_v6};
#endif
