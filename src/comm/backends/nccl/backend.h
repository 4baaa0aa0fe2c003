#pragma once

#include "comm/backend.h"
#include "comm/backends/nccl/library.h"

namespace diapason::comm::nccl {

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
