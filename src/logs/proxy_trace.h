#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "logs/place.h"

namespace diapason::logs {

// One operation of RCCL's proxy trace (RCCL_ENABLE_PROXY_TRACE=1) when it was written.
struct ProxyTraceOp {
  uint64_t communicator = 0;
  int64_t op_count = -1;
  int64_t rank = -1;
  int64_t peer = -1;
  bool send = false;
  int64_t channel = -1;
  std::string status;  // "WAITING_GPU", "SENDING", ...
  int64_t steps = 0;
  int64_t posted = 0;
  int64_t transmitted = 0;
  int64_t received = 0;
  int64_t done = 0;
  SourceLine place;
};

struct ProxyTraces {
  uint64_t finished = 0;
  uint64_t unfinished = 0;
  std::vector<ProxyTraceOp> oldest;  // unfinished ones, lowest opCount first; at most kMost
  static constexpr size_t kMost = 64;
  bool Line(const Spot& spot, std::string_view line);  // whether it was one of these
};

// False for other lines.
bool ParseProxyTrace(std::string_view line, ProxyTraceOp* op);

}  // namespace diapason::logs
