#pragma once

#include <optional>

#include "base/status.h"
#include "diapason/comm.h"
#include "domain/vocabulary.h"

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

// The word policies and tuners have for an operation; send, recv and barrier are no collectives.
inline std::optional<Collective> CollectiveOf(Operation operation) {
  switch (operation) {
    case Operation::kAllReduce:
      return Collective::kAllReduce;
    case Operation::kBroadcast:
      return Collective::kBroadcast;
    case Operation::kReduce:
      return Collective::kReduce;
    case Operation::kAllGather:
      return Collective::kAllGather;
    case Operation::kReduceScatter:
      return Collective::kReduceScatter;
    case Operation::kAllToAll:
      return Collective::kAllToAll;
    case Operation::kSend:
    case Operation::kRecv:
    case Operation::kBarrier:
      break;
  }
  return std::nullopt;
}

// Whether a call makes sense for rank `rank` of `ranks`, whatever the backend: roots that exist,
// buffers that are there, counts that fit into memory, no buffer that overlaps where it must not.
Status CheckCall(const Call& call, int rank, int ranks);

}  // namespace diapason::comm
