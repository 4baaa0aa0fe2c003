// A tuner to be chained: wants tree/simple with one channel where that is on offer.
#include <stddef.h>
#include <stdint.h>

#include "tuner_abi.h"

static int init(void** context, uint64_t id, size_t ranks, size_t nodes, tuner_logger logger,
                tuner_nvl_domain* domain, tuner_constants* constants) {
  (void)id, (void)ranks, (void)nodes, (void)logger, (void)domain, (void)constants;
  *context = NULL;
  return 0;
}

static int ask(void* context, int collective, size_t bytes, int pipe_ops, float** table,
               int algorithms, int protocols, int reg_buff, int* channels) {
  (void)context, (void)collective, (void)bytes, (void)pipe_ops, (void)algorithms, (void)reg_buff;
  float* tree_simple = (float*)table + (protocols - 1);
  if (*tree_simple >= 0) *tree_simple = 0;
  *channels = 1;
  return 0;
}

static int finalize(void* context) {
  (void)context;
  return 0;
}

tuner_v5 ncclTunerPlugin_v5 = {"tree", init, ask, finalize};
