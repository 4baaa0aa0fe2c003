/* A tuner written for 2.30: it excludes everything but ring/ll by -1, which 2.31 takes for the
 * cheapest, and makes pat/simple free whether or not it is on offer. */
#include "tuner_abi.h"

static int init(void** context, uint64_t comm_id, size_t ranks, size_t nodes, tuner_logger logger,
                tuner_nvl_domain* domain, tuner_constants* constants) {
  (void)context, (void)comm_id, (void)ranks, (void)nodes, (void)logger, (void)domain;
  (void)constants;
  return TUNER_SUCCESS;
}

static int ask(void* context, int collective, size_t bytes, int pipe_ops, float** table,
               int algorithms, int protocols, int reg_buff, int* channels) {
  float* cells = (float*)(void*)table;
  (void)context, (void)collective, (void)bytes, (void)pipe_ops, (void)reg_buff, (void)channels;
  for (int i = 0; i < algorithms * protocols; ++i) {
    if (i != RING * protocols + LL) cells[i] = -1.0f;
  }
  cells[PAT * protocols + SIMPLE] = 0.0f;
  return TUNER_SUCCESS;
}

static int stop(void* context) {
  (void)context;
  return TUNER_SUCCESS;
}

const tuner_v6 ncclTunerPlugin_v6 = {"negative", init, ask, stop, NULL};
