/* The part of tuner API v5 that the benchmark plays, as the interface publishes it. */
#ifndef DIAPASON_BENCH_TUNER_V5_H_
#define DIAPASON_BENCH_TUNER_V5_H_

#include <stddef.h>
#include <stdint.h>

typedef void (*tuner_logger)(int level, unsigned long flags, const char* file, int line,
                             const char* format, ...);
typedef struct {
  const char* name;
  int (*init)(void** context, uint64_t comm_id, size_t ranks, size_t nodes, tuner_logger logger,
              void* domain, void* constants);
  int (*get_coll_info)(void* context, int collective, size_t bytes, int pipe_ops, float** table,
                       int algorithms, int protocols, int reg_buff, int* channels);
  int (*finalize)(void* context);
} tuner_v5;

#endif /* DIAPASON_BENCH_TUNER_V5_H_ */
