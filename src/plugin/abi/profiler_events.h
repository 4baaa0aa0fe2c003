#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

// The event descriptors of the profiler plugin interface of NCCL and RCCL, versions 1 to 7, written
// from its published layout. profiler_abi.h has the callbacks that receive them.
//
// All descriptors begin alike: the type (8 bits up to v4), the parent, the rank, and a union at
// offset 24. From v5 on a newer version only appends to members of the union, so the beginning of a
// v7 descriptor is a v6 and a v5 descriptor.
namespace diapason::plugin::abi {

// Event types. Each is one bit, and also that bit of the activation mask.
enum EventType : uint64_t {
  kEventGroup = 1 << 0,
  kEventColl = 1 << 1,
  kEventP2p = 1 << 2,
  kEventProxyOp = 1 << 3,
  kEventProxyStep = 1 << 4,
  kEventProxyCtrl = 1 << 5,
  kEventKernelCh = 1 << 6,  // v3 and later, with the next one
  kEventNetPlugin = 1 << 7,
  kEventGroupApi = 1 << 8,  // v5 and later, with the next three
  kEventCollApi = 1 << 9,
  kEventP2pApi = 1 << 10,
  kEventKernelLaunch = 1 << 11,
  kEventCeColl = 1 << 12,  // v6 and later, with the next two: copy engines
  kEventCeSync = 1 << 13,
  kEventCeBatch = 1 << 14,
  kEventKernelPhase = 1 << 15,  // v7
};

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

struct CollV7 {
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
  const char* kernel_variant;
  bool symmetric;
  uint64_t user_tag;
};

struct P2pV1 {
  const char* name;
  uint64_t comm_hash;
  uint8_t func;
  void* buffer;
  uint8_t datatype;
  size_t count;
  int peer;
};

// v2 and v3.
struct P2pV2 {
  const char* name;
  uint64_t comm_hash;
  const char* func;
  void* buffer;
  const char* datatype;
  size_t count;
  int peer;
};

struct P2pV4 {
  const char* func;
  void* buffer;
  const char* datatype;
  size_t count;
  int peer;
  uint8_t channels;
};

struct P2pV5 {
  const char* func;
  void* buffer;
  const char* datatype;
  size_t count;
  int peer;
  uint8_t channels;
  void* parent_group;
};

struct P2pV7 {
  const char* func;
  void* buffer;
  const char* datatype;
  size_t count;
  int peer;
  uint8_t channels;
  void* parent_group;
  uint64_t user_tag;
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

struct CollApiV7 {
  const char* func;
  size_t count;
  const char* datatype;
  int root;
  void* stream;
  bool captured;
  uint64_t user_tag;
};

struct P2pApiV5 {
  const char* func;
  size_t count;
  const char* datatype;
  void* stream;
  bool captured;
};

struct P2pApiV7 {
  const char* func;
  size_t count;
  const char* datatype;
  void* stream;
  bool captured;
  uint64_t user_tag;
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

struct KernelPhaseV7 {
  uint8_t channel;
  uint8_t phase;
  const char* name;
  uint64_t stamp;
};

// Copy-engine collectives: never read, but part of the size of the descriptor.
struct CeCollV6 {
  uint64_t words[11];
};

struct CeCollV7 {
  uint64_t words[11];
  uint64_t user_tag;
};

// v1 to v4 have an 8-bit type.
struct EventV1 {
  uint8_t type;
  void* parent;
  int rank;
  union {
    CollV1 coll;
    P2pV1 p2p;
    ProxyOpV1 proxy_op;
  };
};

struct EventV2 {
  uint8_t type;
  void* parent;
  int rank;
  union {
    CollV2 coll;
    P2pV2 p2p;
    ProxyOpV1 proxy_op;
  };
};

struct EventV3 {
  uint8_t type;
  void* parent;
  int rank;
  union {
    CollV3 coll;
    P2pV2 p2p;
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
    P2pV4 p2p;
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
    P2pApiV5 p2p_api;
    KernelLaunchV5 kernel_launch;
    CollV5 coll;
    P2pV5 p2p;
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
    P2pApiV5 p2p_api;
    KernelLaunchV5 kernel_launch;
    CollV5 coll;
    P2pV5 p2p;
    ProxyOpV1 proxy_op;
    KernelChV4 kernel_ch;
    CeCollV6 ce_coll;
  };
};

struct EventV7 {
  uint64_t type;
  void* parent;
  int rank;
  union {
    GroupApiV5 group_api;
    CollApiV7 coll_api;
    P2pApiV7 p2p_api;
    KernelLaunchV5 kernel_launch;
    CollV7 coll;
    P2pV7 p2p;
    ProxyOpV1 proxy_op;
    KernelChV4 kernel_ch;
    CeCollV7 ce_coll;
    KernelPhaseV7 kernel_phase;
  };
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
static_assert(sizeof(P2pV1) == 56 && sizeof(P2pV2) == 56 && sizeof(P2pV4) == 40 &&
              sizeof(P2pV5) == 48);
static_assert(sizeof(EventV7) == 136 && offsetof(EventV7, coll_api.user_tag) == 72 &&
              offsetof(EventV7, p2p_api.user_tag) == 64 &&
              offsetof(EventV7, coll.kernel_variant) == 112 &&
              offsetof(EventV7, coll.symmetric) == 120 && offsetof(EventV7, coll.user_tag) == 128 &&
              offsetof(EventV7, p2p.user_tag) == 72 && offsetof(EventV7, ce_coll.user_tag) == 112);
static_assert(offsetof(EventV7, kernel_phase) == 24 &&
              offsetof(EventV7, kernel_phase.phase) == 25 &&
              offsetof(EventV7, kernel_phase.name) == 32 &&
              offsetof(EventV7, kernel_phase.stamp) == 40);
// What a conversion to an older version relies on.
static_assert(offsetof(EventV7, coll.parent_group) == offsetof(EventV5, coll.parent_group) &&
              offsetof(EventV7, p2p.parent_group) == offsetof(EventV5, p2p.parent_group) &&
              offsetof(EventV5, coll.protocol) == offsetof(EventV4, coll.protocol) &&
              offsetof(EventV5, p2p.channels) == offsetof(EventV4, p2p.channels) &&
              offsetof(EventV5, proxy_op) == 24 && offsetof(EventV1, proxy_op) == 24 &&
              offsetof(EventV5, kernel_ch.stamp) == offsetof(EventV4, kernel_ch.stamp));

}  // namespace diapason::plugin::abi
