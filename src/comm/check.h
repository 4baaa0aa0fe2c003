#pragma once

#include "base/status.h"
#include "diapason/comm.h"

namespace diapason::comm {

// What of a call means anything to its operation.
inline bool HasRoot(Operation operation) {
  return operation == Operation::kBroadcast || operation == Operation::kReduce;
}
inline bool HasPeer(Operation operation) {
  return operation == Operation::kSend || operation == Operation::kRecv;
}
inline bool Reduces(Operation operation) {
  return operation == Operation::kAllReduce || operation == Operation::kReduce ||
         operation == Operation::kReduceScatter;
}

// Whether a call makes sense for rank `rank` of `ranks`, whatever the backend: roots that exist,
// buffers that are there, counts that fit into memory, no buffer that overlaps where it must not.
Status CheckCall(const Call& call, int rank, int ranks);

}  // namespace diapason::comm
