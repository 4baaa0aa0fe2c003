#include "comm/backends/sim/data.h"

#include <cstring>

#include "comm/reduce.h"

namespace diapason::comm::sim {
namespace {

const char* Part(const void* data, size_t bytes, size_t part) {
  return static_cast<const char*>(data) + bytes * part;
}
char* Part(void* data, size_t bytes, size_t part) {
  return static_cast<char*>(data) + bytes * part;
}

void Copy(void* to, const void* from, size_t bytes) {
  if (to != from) std::memmove(to, from, bytes);
}

// Part `part` of every rank's `in`, combined.
void Combined(const Call& call, const std::vector<RankBuffers>& ranks, size_t part,
              std::vector<char>* sum) {
  const size_t bytes = call.count * SizeOf(call.type);
  sum->resize(bytes);
  std::memcpy(sum->data(), Part(ranks[0].in, bytes, part), bytes);
  for (size_t r = 1; r < ranks.size(); ++r) {
    Accumulate(call.type, call.reduce, sum->data(), Part(ranks[r].in, bytes, part), call.count);
  }
  Finish(call.type, call.reduce, sum->data(), call.count, static_cast<int>(ranks.size()));
}

}  // namespace

void MoveData(const Call& call, const std::vector<RankBuffers>& ranks) {
  const size_t bytes = call.count * SizeOf(call.type);
  std::vector<char> sum;
  switch (call.operation) {
    case Operation::kAllReduce:
      Combined(call, ranks, 0, &sum);
      for (const RankBuffers& rank : ranks) std::memcpy(rank.out, sum.data(), bytes);
      break;
    case Operation::kReduce:
      Combined(call, ranks, 0, &sum);
      std::memcpy(ranks[static_cast<size_t>(call.peer)].out, sum.data(), bytes);
      break;
    case Operation::kBroadcast:
      for (const RankBuffers& rank : ranks) {
        Copy(rank.out, ranks[static_cast<size_t>(call.peer)].in, bytes);
      }
      break;
    case Operation::kAllGather:
      for (const RankBuffers& rank : ranks) {
        for (size_t r = 0; r < ranks.size(); ++r) {
          Copy(Part(rank.out, bytes, r), ranks[r].in, bytes);
        }
      }
      break;
    case Operation::kReduceScatter:
      // In place, a rank's result overwrites only a part that is no longer needed.
      for (size_t r = 0; r < ranks.size(); ++r) {
        Combined(call, ranks, r, &sum);
        std::memcpy(ranks[r].out, sum.data(), bytes);
      }
      break;
    case Operation::kAllToAll:
      for (size_t r = 0; r < ranks.size(); ++r) {
        for (size_t s = 0; s < ranks.size(); ++s) {
          Copy(Part(ranks[r].out, bytes, s), Part(ranks[s].in, bytes, r), bytes);
        }
      }
      break;
    case Operation::kSend:
    case Operation::kRecv:
    case Operation::kBarrier:
      break;
  }
}

}  // namespace diapason::comm::sim
