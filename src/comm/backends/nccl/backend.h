#pragma once

#include "base/environment.h"
#include "comm/backend.h"
#include "comm/backends/nccl/library.h"

namespace diapason::comm::nccl {

// Whether ranks that share a GPU can be ranks of one host: the user has set
// NCCL_MULTI_RANK_GPU_ENABLE, and this version reads it. `version` as ncclGetVersion tells it.
bool SharesGpuInsideHost(Library library, int version, const Environment& environment);

// NCCL or RCCL as a backend; the flavor holds their differences.
class GpuBackend : public Backend {
 public:
  explicit GpuBackend(Flavor flavor) : flavor_(std::move(flavor)) {}
  BackendInfo Look(const RankInfo& place) const override;
  Result<std::unique_ptr<Communicator>> Create(const Start& start) override;

 private:
  Flavor flavor_;
};

}  // namespace diapason::comm::nccl
