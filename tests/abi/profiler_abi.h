/* profiler_abi.h: the profiler interface of NCCL and RCCL, versions 1 to 7, and the env interface,
 * versions 1 and 2, in plain C11.
 *
 * Written down from the published headers, not from src/: a mistake in the plugin's own copy must
 * show here. A plugin exports each structure as a data symbol; the library takes the newest it
 * knows, and keeps one word of wanted events for all communicators. */
#ifndef TESTS_ABI_PROFILER_ABI_H_
#define TESTS_ABI_PROFILER_ABI_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tuner_abi.h"

#define PROFILER_SYMBOL_FORMAT "ncclProfiler_v%d"
enum { PROFILER_OLDEST_API = 1, PROFILER_NEWEST_API = 7 };

/* Types of events, and the bits of the mask. */
enum {
  GROUP = 1 << 0,
  COLL = 1 << 1,
  P2P = 1 << 2,
  PROXY_OP = 1 << 3,
  PROXY_STEP = 1 << 4,
  PROXY_CTRL = 1 << 5,
  KERNEL_CH = 1 << 6,
  NET_PLUGIN = 1 << 7,
  GROUP_API = 1 << 8,
  COLL_API = 1 << 9,
  P2P_API = 1 << 10,
  KERNEL_LAUNCH = 1 << 11,
  CE_COLL = 1 << 12,
  CE_SYNC = 1 << 13,
  CE_BATCH = 1 << 14,
  KERNEL_PHASE = 1 << 15,
};

/* Changes of state that are played here. */
enum {
  STEP_SEND_WAIT = 9,
  CTRL_IDLE = 13,
  OP_IN_PROGRESS = 19,
  NET_UPDATE = 21,
  KERNEL_CH_STOP = 22,
  GROUP_START_STOP = 23,
  PHASE_STOP = 31,
};

#define PROFILER_PROXY_PARTS               \
  struct {                                 \
    pid_t pid;                             \
    uint8_t channel;                       \
    int peer, steps, chunk_bytes, is_send; \
  } proxy_op;                              \
  struct {                                 \
    int step;                              \
  } proxy_step;                            \
  struct {                                 \
    int64_t id;                            \
    void* data;                            \
  } net_plugin

/* Point to point: v2 and v3; v4; v5 and v6. */
#define PROFILER_P2P_V2   \
  struct {                \
    const char* name;     \
    uint64_t comm_hash;   \
    const char* func;     \
    void* buffer;         \
    const char* datatype; \
    size_t count;         \
    int peer;             \
  } p2p
#define PROFILER_P2P_V4 \
  const char* func;     \
  void* buffer;         \
  const char* datatype; \
  size_t count;         \
  int peer;             \
  uint8_t channels

typedef struct {
  uint8_t type;
  void* parent;
  int rank;
  union {
    struct {
      const char* name;
      uint64_t comm_hash;
      uint64_t sequence;
      uint8_t func;
      const void* send;
      void* receive;
      size_t count;
      int root;
      uint8_t datatype;
      uint32_t op;
      size_t traffic_bytes;
      uint8_t most_channels, warps, algorithm, protocol;
      int is_collnet, is_nvls;
    } coll;
    struct {
      const char* name;
      uint64_t comm_hash;
      uint8_t func;
      void* buffer;
      uint8_t datatype;
      size_t count;
      int peer;
    } p2p;
    PROFILER_PROXY_PARTS;
  };
} profiler_event_v1;

typedef struct {
  uint8_t type;
  void* parent;
  int rank;
  union {
    struct {
      const char* name;
      uint64_t comm_hash;
      uint64_t sequence;
      const char* func;
      const void* send;
      void* receive;
      size_t count;
      int root;
      const char* datatype;
      size_t traffic_bytes;
      uint8_t most_channels, warps;
      const char* algorithm;
      const char* protocol;
    } coll;
    PROFILER_P2P_V2;
    PROFILER_PROXY_PARTS;
  };
} profiler_event_v2;

typedef struct {
  uint8_t type;
  void* parent;
  int rank;
  union {
    struct {
      const char* name;
      uint64_t comm_hash;
      uint64_t sequence;
      const char* func;
      const void* send;
      void* receive;
      size_t count;
      int root;
      const char* datatype;
      uint8_t most_channels, warps;
      const char* algorithm;
      const char* protocol;
    } coll;
    PROFILER_P2P_V2;
    PROFILER_PROXY_PARTS;
    struct {
      uint8_t channel;
    } kernel_ch;
  };
} profiler_event_v3;

typedef struct {
  uint8_t type;
  void* parent;
  int rank;
  union {
    struct {
      uint64_t sequence;
      const char* func;
      const void* send;
      void* receive;
      size_t count;
      int root;
      const char* datatype;
      uint8_t channels, warps;
      const char* algorithm;
      const char* protocol;
    } coll;
    struct {
      PROFILER_P2P_V4;
    } p2p;
    PROFILER_PROXY_PARTS;
    struct {
      uint8_t channel;
      uint64_t stamp;
    } kernel_ch;
  };
} profiler_event_v4;

/* v6 has the same fields where they matter, and parts for copy engines that are no larger. */
typedef struct {
  uint64_t type;
  void* parent;
  int rank;
  union {
    struct {
      bool captured;
      int depth;
    } group_api;
    struct {
      const char* func;
      size_t count;
      const char* datatype;
      int root;
      void* stream;
      bool captured;
    } coll_api;
    struct {
      const char* func;
      size_t count;
      const char* datatype;
      void* stream;
      bool captured;
    } p2p_api;
    struct {
      void* stream;
    } kernel_launch;
    struct {
      uint64_t sequence;
      const char* func;
      const void* send;
      void* receive;
      size_t count;
      int root;
      const char* datatype;
      uint8_t channels, warps;
      const char* algorithm;
      const char* protocol;
      void* parent_group;
    } coll;
    struct {
      PROFILER_P2P_V4;
      void* parent_group;
    } p2p;
    PROFILER_PROXY_PARTS;
    struct {
      uint8_t channel;
      uint64_t stamp;
    } kernel_ch;
  };
} profiler_event_v5;

typedef struct {
  uint64_t type;
  void* parent;
  int rank;
  union {
    struct {
      bool captured;
      int depth;
    } group_api;
    struct {
      const char* func;
      size_t count;
      const char* datatype;
      int root;
      void* stream;
      bool captured;
      uint64_t user_tag;
    } coll_api;
    struct {
      const char* func;
      size_t count;
      const char* datatype;
      void* stream;
      bool captured;
      uint64_t user_tag;
    } p2p_api;
    struct {
      void* stream;
    } kernel_launch;
    struct {
      uint64_t sequence;
      const char* func;
      const void* send;
      void* receive;
      size_t count;
      int root;
      const char* datatype;
      uint8_t channels, warps;
      const char* algorithm;
      const char* protocol;
      void* parent_group;
      const char* kernel_variant;
      bool symmetric;
      uint64_t user_tag;
    } coll;
    struct {
      PROFILER_P2P_V4;
      void* parent_group;
      uint64_t user_tag;
    } p2p;
    PROFILER_PROXY_PARTS;
    struct {
      uint8_t channel;
      uint64_t stamp;
    } kernel_ch;
    struct {
      uint64_t sequence;
      const char* func;
      const void* send;
      void* receive;
      size_t count;
      int root;
      const char* datatype;
      const char* sync_strategy;
      bool intra_batch_sync;
      uint32_t batch_size, batches, ce_sequence;
      void* stream;
      uint64_t user_tag; /* v7 */
    } ce_coll;
    struct {
      bool complete;
      int ranks;
    } ce_sync;
    struct {
      uint8_t channel, phase;
      const char* name;
      uint64_t stamp;
    } kernel_phase;
  };
} profiler_event_v7;

/* What comes with a change of state. */
typedef union {
  size_t bytes;
  int appended;
  void* data;
  uint64_t stamp; /* v4 and later */
  char room[16];  /* v1 to v3 are larger */
} profiler_state;

/* All versions have this shape; init and the descriptor differ. */
typedef struct {
  const char* name;
  void* init;
  int (*start_event)(void* context, void** handle, void* event);
  int (*stop_event)(void* handle);
  int (*record_state)(void* handle, int state, profiler_state* arguments);
  int (*finalize)(void* context);
} profiler_any;

typedef int (*profiler_init_v1)(void** context, int* mask);
typedef int (*profiler_init_v4)(void** context, int* mask, const char* name, uint64_t hash,
                                int nodes, int ranks, int rank, tuner_logger logger);
typedef int (*profiler_init_v5)(void** context, uint64_t id, int* mask, const char* name, int nodes,
                                int ranks, int rank, tuner_logger logger);

typedef struct {
  const char* name;
  int (*init)(uint8_t major, uint8_t minor, uint8_t patch, const char* suffix);
  int (*finalize)(void);
  const char* (*get_env)(const char* name);
} env_v1;

typedef struct {
  const char* name;
  int (*init)(uint8_t major, uint8_t minor, uint8_t patch, const char* suffix, tuner_logger logger);
  int (*finalize)(void);
  const char* (*get_env)(const char* name);
} env_v2;

_Static_assert(sizeof(profiler_event_v1) == 120 && sizeof(profiler_event_v2) == 128, "v1, v2");
_Static_assert(sizeof(profiler_event_v3) == 120 && sizeof(profiler_event_v4) == 104, "v3, v4");
_Static_assert(sizeof(profiler_event_v5) == 112, "v5, v6");
_Static_assert(offsetof(profiler_event_v5, coll_api.captured) == 64, "v5");
_Static_assert(sizeof(profiler_event_v7) == 136, "v7");
_Static_assert(offsetof(profiler_event_v7, coll.kernel_variant) == 112, "v7");
_Static_assert(offsetof(profiler_event_v7, coll.user_tag) == 128, "v7");
_Static_assert(offsetof(profiler_event_v7, ce_coll.user_tag) == 112, "v7");
_Static_assert(offsetof(profiler_event_v7, kernel_phase.stamp) == 40, "v7");
_Static_assert(sizeof(profiler_any) == 48 && sizeof(env_v1) == 32 && sizeof(env_v2) == 32, "");

#endif /* TESTS_ABI_PROFILER_ABI_H_ */
