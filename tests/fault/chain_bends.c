/* A tuner that doubles every number of the library's cost model at init, and chooses nothing. Knows
 * v5 and v6; built again with CHAIN_V7, as one that knows v7. */
#include "tuner_abi.h"

#ifdef CHAIN_V7
typedef tuner_constants_v7 chain_constants;
#else
typedef tuner_constants chain_constants;
#endif

static int init(void** context, uint64_t comm_id, size_t ranks, size_t nodes, tuner_logger logger,
                tuner_nvl_domain* domain, chain_constants* constants) {
  double* numbers = (double*)(void*)constants;
  (void)context, (void)comm_id, (void)ranks, (void)nodes, (void)logger, (void)domain;
  for (size_t i = 0; i < sizeof(*constants) / sizeof(double); ++i) numbers[i] *= 2;
  return TUNER_SUCCESS;
}

static int ask(void* context, int collective, size_t bytes, int pipe_ops, float** table,
               int algorithms, int protocols, int reg_buff, int* channels) {
  (void)context, (void)collective, (void)bytes, (void)pipe_ops, (void)table, (void)algorithms;
  (void)protocols, (void)reg_buff, (void)channels;
  return TUNER_SUCCESS;
}

static int stop(void* context) {
  (void)context;
  return TUNER_SUCCESS;
}

#ifdef CHAIN_V7
const tuner_v7 ncclTunerPlugin_v7 = {"bends", init, ask, stop, NULL};
#else
const tuner_v5 ncclTunerPlugin_v5 = {"bends", init, ask, stop};
const tuner_v6 ncclTunerPlugin_v6 = {"bends", init, ask, stop, NULL};
#endif
