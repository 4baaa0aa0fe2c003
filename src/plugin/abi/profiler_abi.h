#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "plugin/abi/abi.h"

// The profiler plugin interface of NCCL and RCCL, versions 1 to 6, written from its published
// layout: members that this plugin reads have names, the others are padding. Each profiler_vN.cc
// exports one structure as the data symbol ncclProfiler_vN.
namespace diapason::plugin::abi {

// Event types. Each is one bit, and also that bit of the activation mask.
enum EventType : uint64_t {
  kEventGroup = 1 << 0,
  kEventColl = 1 << 1,
  kEventP2p = 1 << 2,
  kEventKernelCh = 1 << 6,
  kEventGroupApi = 1 << 8,  // v5 and later, with the next three
  kEventCollApi = 1 << 9,
  kEventP2pApi = 1 << 10,
  kEventKernelLaunch = 1 << 11,
};

// The only event state that is used: a channel's kernel has stopped.
inline constexpr int kStateKernelChStop = 22;

struct CollV1 {
  const char* name;
  uint64_t comm_hash;
  uint64_t sequence;
  uint8_t func;
  const void* send_buffer;
  void* receive_buffer;
  size_t count;
  int root;
  uint8_t datatype;
  uint32_t op;
  size_t traffic_bytes;
  uint8_t most_channels;
  uint8_t warps;
  uint8_t algorithm;
  uint8_t protocol;
  int is_collnet;
  int is_nvls;
};

struct CollV2 {
  const char* name;
  uint64_t comm_hash;
  uint64_t sequence;
  const char* func;
  const void* send_buffer;
  void* receive_buffer;
  size_t count;
  int root;
  const char* datatype;
  size_t traffic_bytes;
  uint8_t most_channels;
  uint8_t warps;
  const char* algorithm;
  const char* protocol;
};

struct CollV3 {
  const char* name;
  uint64_t comm_hash;
  uint64_t sequence;
  const char* func;
  const void* send_buffer;
  void* receive_buffer;
  size_t count;
  int root;
  const char* datatype;
  uint8_t most_channels;
  uint8_t warps;
  const char* algorithm;
  const char* protocol;
};

struct CollV4 {
  uint64_t sequence;
  const char* func;
  const void* send_buffer;
  void* receive_buffer;
  size_t count;
  int root;
  const char* datatype;
  uint8_t channels;
  uint8_t warps;
  const char* algorithm;
  const char* protocol;
};

struct CollV5 {
  uint64_t sequence;
  const char* func;
  const void* send_buffer;
  void* receive_buffer;
  size_t count;
  int root;
  const char* datatype;
  uint8_t channels;
  uint8_t warps;
  const char* algorithm;
  const char* protocol;
  void* parent_group;
};

struct GroupApiV5 {
  bool captured;
  int depth;
};

struct CollApiV5 {
  const char* func;
  size_t count;
  const char* datatype;
  int root;
  void* stream;
  bool captured;
};

struct KernelLaunchV5 {
  void* stream;
};

struct KernelChV3 {
  uint8_t channel;
};

struct KernelChV4 {
  uint8_t channel;
  uint64_t stamp;
};

struct ProxyOpV1 {
  pid_t pid;
  uint8_t channel;
  int peer;
  int steps;
  int chunk_bytes;
  int is_send;
};

// Copy-engine collectives: never read, but part of the size of the v6 descriptor.
struct CeCollV6 {
  uint64_t sequence;
  const char* func;
  const void* send_buffer;
  void* receive_buffer;
  size_t count;
  int root;
  const char* datatype;
  const char* sync_strategy;
  bool intra_batch_sync;
  uint32_t batch_size;
  uint32_t batches;
  uint32_t ce_sequence;
  void* stream;
};

// v1 to v4 have an 8-bit type.
struct EventV1 {
  uint8_t type;
  void* parent;
  int rank;
  union {
    CollV1 coll;
    ProxyOpV1 proxy_op;
  };
};

struct EventV2 {
  uint8_t type;
  void* parent;
  int rank;
  union {
    CollV2 coll;
    ProxyOpV1 proxy_op;
  };
};

struct EventV3 {
  uint8_t type;
  void* parent;
  int rank;
  union {
    CollV3 coll;
    ProxyOpV1 proxy_op;
    KernelChV3 kernel_ch;
  };
};

struct EventV4 {
  uint8_t type;
  void* parent;
  int rank;
  union {
    CollV4 coll;
    ProxyOpV1 proxy_op;
    KernelChV4 kernel_ch;
  };
};

struct EventV5 {
  uint64_t type;
  void* parent;
  int rank;
  union {
    GroupApiV5 group_api;
    CollApiV5 coll_api;
    KernelLaunchV5 kernel_launch;
    CollV5 coll;
    ProxyOpV1 proxy_op;
    KernelChV4 kernel_ch;
  };
};

struct EventV6 {
  uint64_t type;
  void* parent;
  int rank;
  union {
    GroupApiV5 group_api;
    CollApiV5 coll_api;
    KernelLaunchV5 kernel_launch;
    CollV5 coll;
    ProxyOpV1 proxy_op;
    KernelChV4 kernel_ch;
    CeCollV6 ce_coll;
  };
};

// The arguments of a state change. Only the time stamp is read, and only from v4 on.
union StateV1 {
  struct {
    size_t bytes;
    int steps;
  } proxy_op;
  int appended;
};

union StateV4 {
  size_t bytes;
  int appended;
  void* data;
  uint64_t stamp;
};

template <class Event, class State>
struct ProfilerV1 {
  const char* name;
  int (*init)(void** context, int* mask);
  int (*start_event)(void* context, void** handle, Event* event);
  int (*stop_event)(void* handle);
  int (*record_state)(void* handle, int state, State* arguments);
  int (*finalize)(void* context);
};

struct ProfilerV4 {
  const char* name;
  int (*init)(void** context, int* mask, const char* comm_name, uint64_t comm_id, int nodes,
              int ranks, int rank, Logger logger);
  int (*start_event)(void* context, void** handle, EventV4* event);
  int (*stop_event)(void* handle);
  int (*record_state)(void* handle, int state, StateV4* arguments);
  int (*finalize)(void* context);
};

template <class Event>
struct ProfilerV5 {
  const char* name;
  int (*init)(void** context, uint64_t comm_id, int* mask, const char* comm_name, int nodes,
              int ranks, int rank, Logger logger);
  int (*start_event)(void* context, void** handle, Event* event);
  int (*stop_event)(void* handle);
  int (*record_state)(void* handle, int state, StateV4* arguments);
  int (*finalize)(void* context);
};

static_assert(sizeof(CollV1) == 96 && offsetof(CollV1, count) == 48 &&
              offsetof(CollV1, algorithm) == 82);
static_assert(sizeof(CollV2) == 104 && offsetof(CollV2, most_channels) == 80);
static_assert(sizeof(CollV3) == 96 && offsetof(CollV3, most_channels) == 72);
static_assert(sizeof(CollV4) == 80 && offsetof(CollV4, channels) == 56 &&
              offsetof(CollV4, algorithm) == 64);
static_assert(sizeof(CollV5) == 88 && sizeof(CollApiV5) == 48 && sizeof(CeCollV6) == 88);
static_assert(offsetof(EventV1, coll) == 24 && offsetof(EventV4, kernel_ch.stamp) == 32 &&
              offsetof(EventV5, coll_api.captured) == 64 && offsetof(EventV6, coll) == 24);
static_assert(sizeof(EventV1) == 120 && sizeof(EventV2) == 128 && sizeof(EventV3) == 120 &&
              sizeof(EventV4) == 104 && sizeof(EventV5) == 112 && sizeof(EventV6) == 112);
static_assert(sizeof(StateV1) == 16 && sizeof(StateV4) == 8);
static_assert(sizeof(ProfilerV1<EventV1, StateV1>) == 48 && sizeof(ProfilerV4) == 48 &&
              sizeof(ProfilerV5<EventV6>) == 48);

}  // namespace diapason::plugin::abi
