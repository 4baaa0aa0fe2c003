/* A tuner that knows only v6 and leaves the chunk size out, which is allowed. Chooses ring/ll by
 * making it free. Built again with CHAIN_V7, as one that knows only v7, and with CHAIN_INCOMPLETE,
 * as a v5 that leaves out what is not allowed to be left out. */
#include "tuner_abi.h"

#ifdef CHAIN_V7
typedef tuner_constants_v7 chain_constants;
#else
typedef tuner_constants chain_constants;
#endif

static int init(void** context, uint64_t comm_id, size_t ranks, size_t nodes, tuner_logger logger,
                tuner_nvl_domain* domain, chain_constants* constants) {
  (void)context, (void)comm_id, (void)ranks, (void)nodes, (void)logger, (void)domain;
  (void)constants;
  return TUNER_SUCCESS;
}

static int ask(void* context, int collective, size_t bytes, int pipe_ops, float** table,
               int algorithms, int protocols, int reg_buff, int* channels) {
  (void)context, (void)collective, (void)bytes, (void)pipe_ops, (void)reg_buff, (void)channels;
  float* cell = (float*)(void*)table + RING * protocols + LL;
  if (algorithms > RING && *cell >= 0.0f) *cell = 0.0f;
  return TUNER_SUCCESS;
}

static int stop(void* context) {
  (void)context;
  return TUNER_SUCCESS;
}

#ifdef CHAIN_INCOMPLETE
const tuner_v5 ncclTunerPlugin_v5 = {"incomplete", init, NULL, stop};
int (*chain_unused)(void*, int, size_t, int, float**, int, int, int, int*) = ask;
#elif defined(CHAIN_V7)
const tuner_v7 ncclTunerPlugin_v7 = {"newest", init, ask, stop, NULL};
#else
const tuner_v6 ncclTunerPlugin_v6 = {"newest", init, ask, stop, NULL};
#endif
