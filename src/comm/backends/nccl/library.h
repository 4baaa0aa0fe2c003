#pragma once

#include <array>
#include <climits>
#include <cstddef>
#include <string>
#include <vector>

#include "base/settings.h"
#include "base/status.h"
#include "comm/gpu/runtime.h"
#include "domain/vocabulary.h"

namespace diapason::comm::nccl {

// The part of NCCL's interface that is used, declared here so that building needs no NCCL. RCCL has
// the same entry points, over HIP.
using NcclComm = void*;
using NcclResult = int;
inline constexpr NcclResult kSuccess = 0;
inline constexpr NcclResult kSystemError = 2;
inline constexpr NcclResult kRemoteError = 6;
inline constexpr NcclResult kInProgress = 7;

struct NcclUniqueId {
  std::array<char, 128> bytes{};
};

// The configuration of a communicator as of 2.18. Newer libraries read `size` bytes and ignore, by
// `version`, the padding.
struct NcclConfig {
  static constexpr int kUndefined = INT_MIN;
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = kUndefined;
  int cga_cluster_size = kUndefined;
  int min_ctas = kUndefined;
  int max_ctas = kUndefined;
  const char* net_name = nullptr;
  int split_share = kUndefined;
};
static_assert(sizeof(NcclConfig) == 48);

struct NcclApi {
  NcclResult (*GetVersion)(int*);
  NcclResult (*GetUniqueId)(NcclUniqueId*);
  NcclResult (*CommInitRankConfig)(NcclComm*, int, NcclUniqueId, int, NcclConfig*);
  NcclResult (*CommFinalize)(NcclComm);
  NcclResult (*CommDestroy)(NcclComm);
  NcclResult (*CommAbort)(NcclComm);
  NcclResult (*CommGetAsyncError)(NcclComm, NcclResult*);
  const char* (*GetErrorString)(NcclResult);
  const char* (*GetLastError)(NcclComm);
  NcclResult (*AllReduce)(const void*, void*, size_t, int, int, NcclComm, void*);
  NcclResult (*Broadcast)(const void*, void*, size_t, int, int, NcclComm, void*);
  NcclResult (*Reduce)(const void*, void*, size_t, int, int, int, NcclComm, void*);
  NcclResult (*AllGather)(const void*, void*, size_t, int, NcclComm, void*);
  NcclResult (*ReduceScatter)(const void*, void*, size_t, int, int, NcclComm, void*);
  NcclResult (*Send)(const void*, size_t, int, int, NcclComm, void*);
  NcclResult (*Recv)(void*, size_t, int, int, NcclComm, void*);
  NcclResult (*GroupStart)();
  NcclResult (*GroupEnd)();

  int version = 0;    // 22809
  std::string title;  // "NCCL"
  Library library = Library::kNccl;

  // "2.28.9"
  std::string VersionText() const;
  // "NCCL: unhandled system error: <what it last warned about>"
  std::string ErrorText(NcclResult result) const;
};

// Older libraries do not have the configuration above; pinning needs the tuner interface.
inline constexpr int kFirstVersion = 21800;
inline constexpr int kFirstPinningVersion = 21900;

// The differences between NCCL and RCCL.
struct Flavor {
  Library library;
  Setting file_setting;
  std::vector<const char*> files;
  Result<gpu::Runtime*> (*runtime)();
};

// The library that is already loaded, else the one the setting names, else the loader's. Opened
// once and kept. The error says what is missing or too old.
Result<const NcclApi*> OpenNccl(const Flavor& flavor);

}  // namespace diapason::comm::nccl
