/* A tuner whose init fails. It was never started, so nothing else of it may be called. */
#include <stdlib.h>

#include "tuner_abi.h"

static int init_old(size_t ranks, size_t nodes, tuner_logger logger, void** context) {
  (void)ranks, (void)nodes, (void)logger, (void)context;
  return TUNER_SYSTEM_ERROR;
}

static int init_new(void** context, uint64_t comm_id, size_t ranks, size_t nodes,
                    tuner_logger logger, tuner_nvl_domain* domain, tuner_constants* constants) {
  (void)context, (void)comm_id, (void)ranks, (void)nodes, (void)logger, (void)domain;
  (void)constants;
  return TUNER_SYSTEM_ERROR;
}

static int ask_v3(void* context, int collective, size_t bytes, int pipe_ops, float** table,
                  int algorithms, int protocols, int* channels) {
  (void)context, (void)collective, (void)bytes, (void)pipe_ops, (void)table, (void)algorithms;
  (void)protocols, (void)channels;
  abort();
}

static int ask_v5(void* context, int collective, size_t bytes, int pipe_ops, float** table,
                  int algorithms, int protocols, int reg_buff, int* channels) {
  (void)context, (void)collective, (void)bytes, (void)pipe_ops, (void)table, (void)algorithms;
  (void)protocols, (void)reg_buff, (void)channels;
  abort();
}

static int stop(void* context) {
  (void)context;
  abort();
}

const tuner_v3 ncclTunerPlugin_v3 = {"refuses", init_old, ask_v3, stop};
const tuner_v5 ncclTunerPlugin_v5 = {"refuses", init_new, ask_v5, stop};
