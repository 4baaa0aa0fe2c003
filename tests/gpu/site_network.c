/* A network plugin without adapters that carries a tuner, as a site may have one. The library finds
 * no adapter in it, moves data with its own sockets, and still takes the tuner. The tuner wants
 * tree/simple on one channel for allreduces of 64 KiB and more, and leaves the rest alone. */
#include "../abi/tuner_abi.h"

enum { FROM_BYTES = 65536 };

static int init(void** context, uint64_t comm_id, size_t ranks, size_t nodes, tuner_logger logger,
                tuner_nvl_domain* domain, tuner_constants* constants) {
  (void)comm_id, (void)ranks, (void)nodes, (void)logger, (void)domain, (void)constants;
  *context = NULL;
  return TUNER_SUCCESS;
}

static int ask(void* context, int collective, size_t bytes, int pipe_ops, float** table,
               int algorithms, int protocols, int reg_buff, int* channels) {
  (void)context, (void)pipe_ops, (void)reg_buff;
  float* cells = (float*)(void*)table;
  if (collective != ALLREDUCE || bytes < FROM_BYTES || algorithms <= TREE || protocols <= SIMPLE) {
    return TUNER_SUCCESS;
  }
  if (cells[TREE * protocols + SIMPLE] < 0) return TUNER_SUCCESS;
  cells[TREE * protocols + SIMPLE] = 0.0f;
  *channels = 1;
  return TUNER_SUCCESS;
}

static int stop(void* context) {
  (void)context;
  return TUNER_SUCCESS;
}

const tuner_v5 ncclTunerPlugin_v5 = {"site", init, ask, stop};
const tuner_v6 ncclTunerPlugin_v6 = {"site", init, ask, stop, 0};

/* ncclNet_t, version 11 (2.28 and later), of which a library that is told of no adapter calls these
 * three. (With version 10, NCCL 2.28.9 frees the context of such a plugin twice.) */
static int net_init(void** context, uint64_t comm_id, void* config, void* logger, void* profiler) {
  (void)comm_id, (void)config, (void)logger, (void)profiler;
  *context = NULL;
  return TUNER_SUCCESS;
}

static int net_devices(int* count) {
  *count = 0;
  return TUNER_SUCCESS;
}

const struct {
  const char* name;
  int (*init)(void** context, uint64_t comm_id, void* config, void* logger, void* profiler);
  int (*devices)(int* count);
  void (*others[17])(void);
  int (*finalize)(void* context);
  void (*set_attributes)(void);
} ncclNetPlugin_v11 = {"site", net_init, net_devices, {0}, stop, 0};
