#pragma once

#include <optional>

#include "base/status.h"
#include "diapason/comm.h"
#include "domain/vocabulary.h"

namespace diapason::comm {

// Which arguments an operation uses.
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

// The collective that policies and tuners know for an operation; send, recv and barrier have none.
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

// Whether a call is valid for rank `rank` of `ranks`, whatever the backend: the root exists,
// buffers are given and do not overlap where they must not, counts fit into memory.
Status CheckCall(const Call& call, int rank, int ranks);

}  // namespace diapason::comm
