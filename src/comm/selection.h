#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "comm/backend.h"
#include "diapason/comm.h"

namespace diapason::comm {

// The backends that one rank has found, for the other ranks.
struct Findings {
  std::string host;
  std::string wanted;  // "auto" or a name
  std::vector<BackendInfo> backends;

  std::string Encode() const;
  static Result<Findings> Decode(const std::string& text);
};

// Examines the wanted backend, or all that can be chosen.
Findings LookAround(const std::string& wanted, const RankInfo& place);

struct SelectedBackend {
  std::string backend;
  // "gloo 0.5.0, tcp; not nccl: no NVIDIA driver; not rccl: ..."
  std::string description;
};
// Chooses the first backend that works on every rank; the result is the same on every rank.
Result<SelectedBackend> Choose(const std::vector<Findings>& ranks);

}  // namespace diapason::comm
