// Calls and ranks as errors name them.
#include "base/text.h"
#include "base/units.h"
#include "comm/backends/sim/world.h"
#include "domain/collectives.h"
#include "domain/decision.h"

namespace diapason::comm::sim {

std::string RankList(const std::vector<int>& ranks) {
  constexpr size_t kNamed = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size() && i < kNamed; ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += Format("{}", ranks[i]);
  }
  if (ranks.size() > kNamed) text += Format(" and {} more", ranks.size() - kNamed);
  return text;
}

std::string CallText(const Call& call) {
  std::string text = OperationName(call.operation);
  if (call.operation == Operation::kBarrier) return text;
  text += " of " + FormatBytes(call.count * SizeOf(call.type)) + " " + DataTypeName(call.type);
  const OperationFacts& facts = FactsOf(call.operation);
  if (facts.peer != Peer::kNone) {
    text += Format(" {} rank {}", facts.peer == Peer::kFrom ? "from" : "to", call.peer);
  }
  if (facts.reduces) text += std::string(" (") + ReduceOpName(call.reduce) + ")";
  if (!call.config.IsDefault()) {
    text += " with " + ConfigText(Library::kNccl, Collective::kAllReduce, call.config);
  }
  return text;
}

}  // namespace diapason::comm::sim
