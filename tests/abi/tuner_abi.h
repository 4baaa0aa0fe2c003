/* tuner_abi.h: the tuner plugin interface of NCCL and RCCL, versions 1 to 7, in plain C11.
 *
 * Written down from the published headers, not from src/: a mistake in the plugin's own copy must
 * show here. Enumerations travel as int, as the C ABI has them. A plugin exports each structure as
 * a data symbol, TUNER_SYMBOL_V1 and so on; the library takes the newest it knows. */
#ifndef TESTS_ABI_TUNER_ABI_H_
#define TESTS_ABI_TUNER_ABI_H_

#include <stddef.h>
#include <stdint.h>

#define TUNER_SYMBOL_FORMAT "ncclTunerPlugin_v%d"
enum { TUNER_OLDEST_API = 1, TUNER_NEWEST_API = 7 };

/* ncclResult_t: everything but 0 fails the communicator or the collective. */
enum { TUNER_SUCCESS = 0, TUNER_SYSTEM_ERROR = 2, TUNER_INTERNAL_ERROR = 3 };

/* ncclFunc_t: the five a tuner is asked about; later numbers differ between libraries. */
enum { BROADCAST = 0, REDUCE = 1, ALLGATHER = 2, REDUCESCATTER = 3, ALLREDUCE = 4 };
enum { COLLECTIVES = 5 };

/* Algorithms and protocols, the rows and columns of the cost table. UNDEF is how v1 and v2 say
 * "not chosen". PAT, and so a table of seven rows, exists from 2.23 on. */
enum { UNDEF = -1 };
enum { TREE, RING, COLLNET_DIRECT, COLLNET_CHAIN, NVLS, NVLS_TREE, PAT };
enum { ALGORITHMS_BEFORE_PAT = 6, ALGORITHMS = 7 };
enum { LL, LL128, SIMPLE };
enum { PROTOCOLS = 3 };

/* ncclDebugLogLevel. RCCL 2.27.7 put one more level in front of VERSION. */
enum { NCCL_LOG_WARN = 2, NCCL_LOG_INFO = 3, NEW_RCCL_LOG_WARN = 3, NEW_RCCL_LOG_INFO = 4 };

typedef void (*tuner_logger)(int level, unsigned long flags, const char* file, int line,
                             const char* format, ...);

/* v5 and later: what NVLink connects, and the library's model, which a plugin may bend. */
typedef struct {
  int domains;
  int least_ranks_per_domain;
  int most_ranks_per_domain;
} tuner_nvl_domain;

typedef struct {
  double base_latencies[ALGORITHMS][PROTOCOLS];
  double hardware_latencies[3][ALGORITHMS][PROTOCOLS]; /* NVLink, PCI, network */
  double ll_most_bandwidth[4][3];                      /* Volta.. x 1, 2, 4+ nodes; so are all */
  double ring_ll128_most_bandwidth[4][3];
  double tree_ll128_most_bandwidth[4][3];
  double tree_most_bandwidth[4][3];
  double nvls_tree_most_bandwidth[4][3];
} tuner_constants;

/* v7: one more generation, Rubin. */
typedef struct {
  double base_latencies[ALGORITHMS][PROTOCOLS];
  double hardware_latencies[3][ALGORITHMS][PROTOCOLS];
  double ll_most_bandwidth[5][3];
  double ring_ll128_most_bandwidth[5][3];
  double tree_ll128_most_bandwidth[5][3];
  double tree_most_bandwidth[5][3];
  double nvls_tree_most_bandwidth[5][3];
} tuner_constants_v7;

/* 2.19 and 2.20. No context: every communicator of the process shares the plugin's state. */
typedef struct {
  const char* name;
  int (*init)(size_t ranks, size_t nodes, tuner_logger logger);
  int (*get_coll_info)(int collective, size_t bytes, int collnet_support, int nvls_support,
                       int pipe_ops, int* algorithm, int* protocol, int* channels);
  int (*destroy)(void);
} tuner_v1;

/* 2.21. The pair is taken as it is answered, without any check. */
typedef struct {
  const char* name;
  int (*init)(size_t ranks, size_t nodes, tuner_logger logger, void** context);
  int (*get_coll_info)(void* context, int collective, size_t bytes, int collnet_support,
                       int nvls_support, int pipe_ops, int* algorithm, int* protocol,
                       int* channels);
  int (*destroy)(void* context);
} tuner_v2;

/* 2.22 and 2.23. `table` is typed float** and is the address of a flat row-major float array. */
typedef struct {
  const char* name;
  int (*init)(size_t ranks, size_t nodes, tuner_logger logger, void** context);
  int (*get_coll_info)(void* context, int collective, size_t bytes, int pipe_ops, float** table,
                       int algorithms, int protocols, int* channels);
  int (*destroy)(void* context);
} tuner_v3;

/* 2.24 to 2.27: regBuff before the channel count. */
typedef struct {
  const char* name;
  int (*init)(size_t ranks, size_t nodes, tuner_logger logger, void** context);
  int (*get_coll_info)(void* context, int collective, size_t bytes, int pipe_ops, float** table,
                       int algorithms, int protocols, int reg_buff, int* channels);
  int (*destroy)(void* context);
} tuner_v4;

/* 2.28 and 2.29: the context comes first, and the communicator has a name. */
typedef struct {
  const char* name;
  int (*init)(void** context, uint64_t comm_id, size_t ranks, size_t nodes, tuner_logger logger,
              tuner_nvl_domain* domain, tuner_constants* constants);
  int (*get_coll_info)(void* context, int collective, size_t bytes, int pipe_ops, float** table,
                       int algorithms, int protocols, int reg_buff, int* channels);
  int (*finalize)(void* context);
} tuner_v5;

/* 2.30 to 2.32.3: a fifth callback, which may be NULL. */
typedef struct {
  const char* name;
  int (*init)(void** context, uint64_t comm_id, size_t ranks, size_t nodes, tuner_logger logger,
              tuner_nvl_domain* domain, tuner_constants* constants);
  int (*get_coll_info)(void* context, int collective, size_t bytes, int pipe_ops, float** table,
                       int algorithms, int protocols, int reg_buff, int* channels);
  int (*finalize)(void* context);
  int (*get_chunk_size)(void* context, int collective, size_t bytes, int algorithm, int protocol,
                        int channels, size_t* chunk_size);
} tuner_v6;

/* 2.32.6 and later: only the constants differ. */
typedef struct {
  const char* name;
  int (*init)(void** context, uint64_t comm_id, size_t ranks, size_t nodes, tuner_logger logger,
              tuner_nvl_domain* domain, tuner_constants_v7* constants);
  int (*get_coll_info)(void* context, int collective, size_t bytes, int pipe_ops, float** table,
                       int algorithms, int protocols, int reg_buff, int* channels);
  int (*finalize)(void* context);
  int (*get_chunk_size)(void* context, int collective, size_t bytes, int algorithm, int protocol,
                        int channels, size_t* chunk_size);
} tuner_v7;

_Static_assert(sizeof(tuner_v1) == 32 && sizeof(tuner_v2) == 32 && sizeof(tuner_v3) == 32 &&
                   sizeof(tuner_v4) == 32 && sizeof(tuner_v5) == 32 && sizeof(tuner_v6) == 40 &&
                   sizeof(tuner_v7) == 40,
               "the published sizes, with 8-byte pointers");
_Static_assert(sizeof(tuner_constants) == 1152, "the published size");
_Static_assert(sizeof(tuner_constants_v7) == 1272 &&
                   offsetof(tuner_constants_v7, ring_ll128_most_bandwidth) == 792 &&
                   offsetof(tuner_constants_v7, nvls_tree_most_bandwidth) == 1152,
               "the published layout");

#endif /* TESTS_ABI_TUNER_ABI_H_ */
