/* A broken tuner: writes nonsense over everything it is handed, then reports an error. */
#include "tuner_abi.h"

static int init_old(size_t ranks, size_t nodes, tuner_logger logger, void** context) {
  (void)ranks, (void)nodes, (void)logger;
  *context = NULL;
  return TUNER_SUCCESS;
}

static int init_new(void** context, uint64_t comm_id, size_t ranks, size_t nodes,
                    tuner_logger logger, tuner_nvl_domain* domain, tuner_constants* constants) {
  (void)comm_id, (void)domain, (void)constants;
  return init_old(ranks, nodes, logger, context);
}

static int stop(void* context) {
  (void)context;
  return TUNER_SYSTEM_ERROR;
}

static int scribble(float** table, int algorithms, int protocols, int* channels) {
  float* cells = (float*)(void*)table;
  for (int i = 0; i < algorithms * protocols; ++i) cells[i] = i % 2 ? 0.0f : -7.0f;
  *channels = -99;
  return TUNER_INTERNAL_ERROR;
}

static int ask_v2(void* context, int collective, size_t bytes, int collnet, int nvls, int pipe_ops,
                  int* algorithm, int* protocol, int* channels) {
  (void)context, (void)collective, (void)bytes, (void)collnet, (void)nvls, (void)pipe_ops;
  *algorithm = *protocol = *channels = 1234;
  return TUNER_INTERNAL_ERROR;
}

static int ask_v3(void* context, int collective, size_t bytes, int pipe_ops, float** table,
                  int algorithms, int protocols, int* channels) {
  (void)context, (void)collective, (void)bytes, (void)pipe_ops;
  return scribble(table, algorithms, protocols, channels);
}

static int ask_v5(void* context, int collective, size_t bytes, int pipe_ops, float** table,
                  int algorithms, int protocols, int reg_buff, int* channels) {
  (void)context, (void)collective, (void)bytes, (void)pipe_ops, (void)reg_buff;
  return scribble(table, algorithms, protocols, channels);
}

static int chunk_v6(void* context, int collective, size_t bytes, int algorithm, int protocol,
                    int channels, size_t* chunk_size) {
  (void)context, (void)collective, (void)bytes, (void)algorithm, (void)protocol, (void)channels;
  *chunk_size = 0; /* which the library would divide by */
  return TUNER_INTERNAL_ERROR;
}

const tuner_v2 ncclTunerPlugin_v2 = {"scribbler", init_old, ask_v2, stop};
const tuner_v3 ncclTunerPlugin_v3 = {"scribbler", init_old, ask_v3, stop};
const tuner_v5 ncclTunerPlugin_v5 = {"scribbler", init_new, ask_v5, stop};
const tuner_v6 ncclTunerPlugin_v6 = {"scribbler", init_new, ask_v5, stop, chunk_v6};
