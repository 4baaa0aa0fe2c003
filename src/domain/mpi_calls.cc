#include "domain/mpi_calls.h"

#include "domain/collectives.h"

namespace diapason {

std::optional<Collective> CollectiveOf(MpiCall call) {
  const MpiCallFacts& facts = FactsOf(call);
  if (facts.rules != MpiRules::kTuned) return std::nullopt;
  for (const OperationFacts& operation : kOperations) {
    if (operation.collective && operation.mpi == facts.name) return operation.collective;
  }
  return std::nullopt;
}

uint8_t CodeOf(MpiCall call) {
  const std::optional<Collective> collective = CollectiveOf(call);
  return collective ? static_cast<uint8_t>(*collective)
                    : static_cast<uint8_t>(kFirstMpiCode + static_cast<uint8_t>(call));
}

std::optional<MpiCall> MpiCallOf(uint8_t code) {
  if (code < kFirstMpiCode || code >= kFirstMpiCode + kMpiCallCount) return std::nullopt;
  return static_cast<MpiCall>(code - kFirstMpiCode);
}

std::string_view CodeName(uint8_t code) {
  if (code < kCollectiveCount) return CollectiveName(static_cast<Collective>(code));
  const std::optional<MpiCall> call = MpiCallOf(code);
  return call ? FactsOf(*call).word : "?";
}

}  // namespace diapason
