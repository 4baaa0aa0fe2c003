#include "comm/tally.h"

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "domain/collectives.h"

namespace diapason::comm {
namespace {

std::string Described(Operation operation, uint64_t number, uint64_t bytes, DataType type) {
  std::string text = Format("{} number {}", OperationName(operation), number);
  if (operation == Operation::kBarrier) return text;
  return text + ", " + (bytes < 1024 ? std::to_string(bytes) + " bytes" : FormatBytes(bytes)) +
         " " + DataTypeName(type);
}

}  // namespace

uint64_t CallBytes(const Call& call, int ranks) {
  size_t count = call.count;
  for (const Tensor& tensor : call.tensors) count += tensor.count;
  const OperationFacts& facts = FactsOf(call.operation);
  return std::max(Elements(facts.in, count, ranks), Elements(facts.out, count, ranks)) *
         SizeOf(call.type);
}

std::string CallText(const Call& call, uint64_t number, int ranks) {
  return Described(call.operation, number, CallBytes(call, ranks), call.type);
}

Statistics CallCounts::Get(double link_peak, bool simulated) const {
  Statistics statistics;
  statistics.operations = operations_;
  statistics.slow_calls = slow_calls_;
  statistics.untimed = untimed_;
  statistics.seconds = clock_->Seconds(ticks_);
  statistics.simulated = simulated;
  statistics.link_peak = link_peak;
  double bus_bytes = 0;
  for (int i = 0; i < kOperationCount; ++i) {
    statistics.bytes += bytes_[i];
    bus_bytes += static_cast<double>(bytes_[i]) * BusFactor(static_cast<Operation>(i), ranks_);
  }
  if (statistics.seconds > 0) {
    statistics.algbw = static_cast<double>(statistics.bytes) / statistics.seconds;
    statistics.busbw = bus_bytes / statistics.seconds;
  }
  statistics.bytes += untimed_bytes_;
  if (link_peak > 0) statistics.peak_share = statistics.busbw / link_peak;
  if (slowest_number_ > 0) {
    statistics.slowest_seconds = clock_->Seconds(slowest_ticks_);
    statistics.slowest =
        Described(slowest_operation_, slowest_number_, slowest_bytes_, slowest_type_) +
        Format(", {:.3g} ms{}", statistics.slowest_seconds * 1e3, simulated ? " (simulated)" : "");
  }
  return statistics;
}

}  // namespace diapason::comm
