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

// Starts MPI unless the program has; what we start is finalized when the process exits. `choose`
// makes Open MPI read its dynamic rules. Environment defaults are set only where the user set none.
Status StartMpi(bool choose, const RankInfo& place);
// After a failure the other ranks may never come to MPI_Finalize: it is then left out.
void LeaveMpiUnfinished();

// "4.1.4"; the whole text of another MPI.
std::string MpiVersion();

// Our types and reductions as MPI has them; f16 and bf16, which it lacks, are made once. After
// StartMpi only.
struct MpiWords {
  MpiWords();
  MPI_Datatype Type(DataType type) const { return types[static_cast<size_t>(type)]; }
  MPI_Op Reduction(DataType type, ReduceOp reduce) const {
    return reductions[static_cast<size_t>(type)][static_cast<size_t>(reduce)];
  }

  MPI_Datatype types[8];
  MPI_Op reductions[8][5];
};

// Communicators with one configuration of coll_tuned each. Open MPI reads its control variables
// when a communicator is created: so every configuration has a copy of its own, made at its first
// call.
class TunedCopies {
 public:
  explicit TunedCopies(MPI_Comm original) : original_(original) {}
  ~TunedCopies();
  TunedCopies(const TunedCopies&) = delete;
  TunedCopies& operator=(const TunedCopies&) = delete;

  // Whether coll_tuned can be told what to do, and knows this configuration.
  Status Knows(Collective collective, const Config& config) const;
  // Every rank calls this in the same call.
  Result<MPI_Comm> For(Collective collective, const Config& config);

 private:
  using Key = std::tuple<Collective, int, int64_t>;
  MPI_Comm original_;
  std::map<Key, MPI_Comm> copies_;
};

}  // namespace diapason::comm
