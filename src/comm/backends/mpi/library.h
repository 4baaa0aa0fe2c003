#pragma once

#include <mpi.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "base/status.h"
#include "comm/backend.h"
#include "diapason/comm.h"
#include "domain/vocabulary.h"

namespace diapason::comm {

// An MPI error code as a Status.
Status FromMpi(int code);

// Initialises MPI unless the program has; in that case MPI is finalized at process exit. `choose`
// makes Open MPI read its dynamic rules. Environment variables that the user has set are not
// changed.
Status StartMpi(bool choose, const RankInfo& place);
// After a failure other ranks may never call MPI_Finalize: it is then skipped.
void LeaveMpiUnfinished();

// "4.1.4"; the full version text of another MPI.
std::string MpiVersion();

// MPI's handles for the data types and reductions; f16 and bf16, which MPI lacks, are created once.
// After StartMpi only.
struct MpiWords {
  MpiWords();
  MPI_Datatype Type(DataType type) const { return types[static_cast<size_t>(type)]; }
  MPI_Op Reduction(DataType type, ReduceOp reduce) const {
    return reductions[static_cast<size_t>(type)][static_cast<size_t>(reduce)];
  }

  MPI_Datatype types[8];
  MPI_Op reductions[8][5];
};

// Duplicates of a communicator, each with one configuration of coll_tuned. Open MPI reads its
// control variables when a communicator is created, so every configuration has its own duplicate,
// created at its first call.
class TunedCopies {
 public:
  explicit TunedCopies(MPI_Comm original) : original_(original) {}
  ~TunedCopies();
  TunedCopies(const TunedCopies&) = delete;
  TunedCopies& operator=(const TunedCopies&) = delete;

  // Whether coll_tuned can be configured, and supports this configuration.
  Status Knows(Collective collective, const Config& config) const;
  // Every rank calls this in the same call.
  Result<MPI_Comm> For(Collective collective, const Config& config);

 private:
  using Key = std::tuple<Collective, int, int64_t>;
  MPI_Comm original_;
  std::map<Key, MPI_Comm> copies_;
};

}  // namespace diapason::comm
