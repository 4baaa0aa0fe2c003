/* A network plugin with a tuner inside that changes nothing. */
#include "tuner_abi.h"

static int init(void** context, uint64_t comm_id, size_t ranks, size_t nodes, tuner_logger logger,
                tuner_nvl_domain* domain, tuner_constants* constants) {
  (void)context, (void)comm_id, (void)ranks, (void)nodes, (void)logger, (void)domain;
  (void)constants;
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

const tuner_v6 ncclTunerPlugin_v6 = {"network", init, ask, stop, 0};
const char* const ncclNetPlugin_v10 = "a network plugin that moves nothing";
