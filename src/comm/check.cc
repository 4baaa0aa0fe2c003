#include "comm/check.h"

#include "base/text.h"

namespace diapason::comm {
namespace {

// Larger than any memory; keeps every product of counts and sizes in range.
constexpr size_t kMostElements = size_t{1} << 50U;

Status Wrong(const Call& call, const std::string& what) {
  return Invalid(std::string(OperationName(call.operation)) + ": " + what);
}

bool Overlap(const char* a, size_t a_size, const char* b, size_t b_size) {
  return a < b + b_size && b < a + a_size;
}

Status CheckBuffers(const Call& call, int rank, int ranks) {
  const OperationFacts& facts = FactsOf(call.operation);
  const size_t width = SizeOf(call.type);
  const size_t in_size = InCount(call, rank, ranks) * width;
  const size_t out_size = OutCount(call, rank, ranks) * width;
  if (in_size > 0 && call.in == nullptr) {
    return Wrong(call, HasRoot(call.operation) ? "the root has no input buffer"
                                               : "there is no input buffer");
  }
  if (out_size > 0 && call.out == nullptr) return Wrong(call, "there is no output buffer");
  if (in_size == 0 || out_size == 0) return {};
  const auto* in = static_cast<const char*>(call.in);
  const auto* out = static_cast<const char*>(call.out);
  if (!Overlap(in, in_size, out, out_size)) return {};
  if (!HasInPlace(call.operation)) {
    return Wrong(call, "input and output overlap: it cannot run in place");
  }
  const size_t own = call.count * width * static_cast<size_t>(rank);
  if (facts.out == Extent::kAllRanks) {
    if (in == out + own) return {};
    return Wrong(call, "the input overlaps the output, and is not its own part of it");
  }
  if (facts.in == Extent::kAllRanks) {
    if (out == in + own) return {};
    return Wrong(call, "the output overlaps the input, and is not its own part of it");
  }
  return in == out ? Status() : Wrong(call, "input and output overlap in part");
}

Status CheckTensors(const Call& call) {
  if (call.operation != Operation::kAllReduce) {
    return Wrong(call, "only all_reduce takes several tensors");
  }
  size_t total = 0;
  for (const Tensor& tensor : call.tensors) {
    if (tensor.count > kMostElements || total > kMostElements)
      return Wrong(call, "too many elements");
    total += tensor.count;
    Call one = call;
    one.tensors = {};
    one.in = tensor.in;
    one.out = tensor.out;
    one.count = tensor.count;
    if (tensor.count == 0) continue;
    RETURN_IF_ERROR(CheckBuffers(one, 0, 1));
  }
  return {};
}

}  // namespace

size_t InCount(const Call& call, int rank, int ranks) {
  const OperationFacts& facts = FactsOf(call.operation);
  if (facts.peer == Peer::kFrom && rank != call.peer) return 0;
  return Elements(facts.in, call.count, ranks);
}

size_t OutCount(const Call& call, int rank, int ranks) {
  const OperationFacts& facts = FactsOf(call.operation);
  if (facts.peer == Peer::kTo && rank != call.peer) return 0;
  return Elements(facts.out, call.count, ranks);
}

Status CheckCall(const Call& call, int rank, int ranks) {
  if (static_cast<int>(call.operation) >= kOperationCount) return Invalid("unknown operation");
  if (call.operation == Operation::kBarrier) return {};
  const bool rooted = HasRoot(call.operation);
  const bool paired = HasPeer(call.operation);
  if ((rooted || paired) && (call.peer < 0 || call.peer >= ranks)) {
    return Wrong(call, Format("{} {} does not exist among {} ranks", rooted ? "root" : "rank",
                              call.peer, ranks));
  }
  if (paired && call.peer == rank) {
    return Wrong(call, Format("rank {} cannot exchange with itself", rank));
  }
  if (call.wire.has_value()) {
    if (call.operation != Operation::kAllReduce || call.type != DataType::kF32 ||
        (*call.wire != DataType::kF16 && *call.wire != DataType::kBf16)) {
      return Wrong(call, "a wire type is for an all_reduce of f32, and is bf16 or f16");
    }
  }
  if (static_cast<size_t>(call.type) > static_cast<size_t>(DataType::kI64)) {
    return Wrong(call, "unknown data type");
  }
  if (Reduces(call.operation) && static_cast<size_t>(call.reduce) > 4) {
    return Wrong(call, "unknown reduction");
  }
  if (call.count > kMostElements / static_cast<size_t>(ranks)) {
    return Wrong(call, "too many elements");
  }
  if (!call.tensors.empty()) return CheckTensors(call);
  if (call.count == 0) return {};
  return CheckBuffers(call, rank, ranks);
}

}  // namespace diapason::comm
