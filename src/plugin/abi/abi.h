#pragma once

#include <cstddef>
#include <cstdint>

// The tuner plugin interface of NCCL and RCCL, versions 1 to 7, written from its published layout.
// Enumerations are passed as int. Each tuner_vN.cc exports one of these structures as the data
// symbol ncclTunerPlugin_vN; the rest of the plugin does not depend on the version.
namespace diapason::plugin::abi {

inline constexpr int kSuccess = 0;
// The only error code the plugin returns: see docs/internals/agreement.md.
inline constexpr int kSystemError = 2;

using Logger = void (*)(int level, unsigned long flags, const char* file, int line,
                        const char* format, ...);

struct NvlDomainInfo;  // passed on to a chained tuner, never read
struct Constants;      // likewise: diapason never changes the library's cost model; see constants.h

struct TunerV1 {
  const char* name;
  int (*init)(size_t ranks, size_t nodes, Logger logger);
  int (*get_coll_info)(int collective, size_t bytes, int collnet_support, int nvls_support,
                       int pipe_ops, int* algorithm, int* protocol, int* channels);
  int (*destroy)();
};

struct TunerV2 {
  const char* name;
  int (*init)(size_t ranks, size_t nodes, Logger logger, void** context);
  int (*get_coll_info)(void* context, int collective, size_t bytes, int collnet_support,
                       int nvls_support, int pipe_ops, int* algorithm, int* protocol,
                       int* channels);
  int (*destroy)(void* context);
};

struct TunerV3 {
  const char* name;
  int (*init)(size_t ranks, size_t nodes, Logger logger, void** context);
  // `table` is declared float** but is the address of a flat float[algorithms][protocols].
  int (*get_coll_info)(void* context, int collective, size_t bytes, int pipe_ops, float** table,
                       int algorithms, int protocols, int* channels);
  int (*destroy)(void* context);
};

struct TunerV4 {
  const char* name;
  int (*init)(size_t ranks, size_t nodes, Logger logger, void** context);
  int (*get_coll_info)(void* context, int collective, size_t bytes, int pipe_ops, float** table,
                       int algorithms, int protocols, int reg_buff, int* channels);
  int (*destroy)(void* context);
};

struct TunerV5 {
  const char* name;
  int (*init)(void** context, uint64_t comm_id, size_t ranks, size_t nodes, Logger logger,
              NvlDomainInfo* domain, Constants* constants);
  int (*get_coll_info)(void* context, int collective, size_t bytes, int pipe_ops, float** table,
                       int algorithms, int protocols, int reg_buff, int* channels);
  int (*finalize)(void* context);
};

struct TunerV6 {
  const char* name;
  int (*init)(void** context, uint64_t comm_id, size_t ranks, size_t nodes, Logger logger,
              NvlDomainInfo* domain, Constants* constants);
  int (*get_coll_info)(void* context, int collective, size_t bytes, int pipe_ops, float** table,
                       int algorithms, int protocols, int reg_buff, int* channels);
  int (*finalize)(void* context);
  int (*get_chunk_size)(void* context, int collective, size_t bytes, int algorithm, int protocol,
                        int channels, size_t* chunk_size);
};

// v7 has the callbacks of v6; only the layout of the constants differs.
using TunerV7 = TunerV6;

static_assert(sizeof(TunerV1) == 32 && sizeof(TunerV2) == 32 && sizeof(TunerV3) == 32 &&
              sizeof(TunerV4) == 32 && sizeof(TunerV5) == 32 && sizeof(TunerV6) == 40);

inline constexpr int kNewestApi = 7;

}  // namespace diapason::plugin::abi

// `extern`: a namespace-scope const object has internal linkage in C++, and dlsym would not find
// it.
#define DIAPASON_EXPORT extern "C" __attribute__((visibility("default")))
