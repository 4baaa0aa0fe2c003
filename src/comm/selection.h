#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "comm/backend.h"
#include "diapason/comm.h"

namespace diapason::comm {

// In the order of preference. The simulated cluster is only used when it is named.
const std::vector<std::string>& PreferredBackends();

// What one rank has found, for the others to read.
struct Findings {
  std::string host;
  std::string wanted;  // "auto" or a name
  std::vector<BackendInfo> backends;

  std::string Encode() const;
  static Result<Findings> Decode(const std::string& text);
};

// Looks at the wanted backend, or at all that can be chosen.
Findings LookAround(const std::string& wanted, const RankInfo& place);

struct SelectedBackend {
  std::string backend;
  // "gloo 0.5.0, tcp; not nccl: no NVIDIA driver; not rccl: ..."
  std::string description;
};
// The same answer on every rank, from every rank's findings: the first that works everywhere.
Result<SelectedBackend> Choose(const std::vector<Findings>& ranks);

}  // namespace diapason::comm
