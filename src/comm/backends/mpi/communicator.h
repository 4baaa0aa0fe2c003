#pragma once

#include <mpi.h>

#include <climits>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/backends/mpi/library.h"
#include "comm/communicator.h"

namespace diapason::comm {

// Open MPI. Blocking calls use MPI's blocking functions, the only ones on which coll_tuned decides;
// they cannot be cancelled, so a time-out logs a message and ends the job.
class MpiCommunicator : public Communicator {
 public:
  // Takes ownership of `communicator`.
  MpiCommunicator(MPI_Comm communicator, std::function<void(const std::string&)> log);
  ~MpiCommunicator() override;

  Status Run(const Call& call, Deadline deadline) override;
  Status RunPlain(const void* in, void* out, size_t count, DataType type, ReduceOp reduce,
                  std::chrono::milliseconds limit) override;
  Result<std::unique_ptr<PendingCall>> Start(const Call& call, Deadline deadline) override;
  void Interrupt(const std::string& reason) noexcept override;
  void Abandon() noexcept override;
  Status CanRun(const Call& call) const override;
  Result<std::unique_ptr<Communicator>> Split(const std::vector<int>& members,
                                              const std::string& name, Deadline deadline) override;
  size_t PlainLimit() const override { return INT_MAX / static_cast<size_t>(size_); }
  int LocalRank() const override { return local_rank_; }
  int Nodes() const override { return nodes_; }

 private:
  Status RunBlocking(const Call& call, MPI_Comm communicator);

  MPI_Comm communicator_;
  MpiWords words_;
  int rank_ = 0;
  int size_ = 1;
  int local_rank_ = 0;
  int nodes_ = 1;
  bool abandoned_ = false;
  std::function<void(const std::string&)> log_;
  std::vector<int> counts_;  // for reduce_scatter
  TunedCopies copies_;
};

}  // namespace diapason::comm
