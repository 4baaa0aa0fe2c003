#include "comm/backends/gloo/plans.h"

#include <gloo/allreduce_bcube.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/reduce_scatter.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/text.h"
#include "comm/backends/gloo/library.h"
#include "comm/reduce.h"
#include "domain/vocabulary.h"

namespace diapason::comm {
namespace {

constexpr size_t kMostPlans = 32;
constexpr size_t kMostBytes = size_t{256} << 20U;

// Gloo's algorithms only move elements and call the reduction: one instance per element width is
// enough.
template <typename T, DataType kType, ReduceOp kReduce>
void ReduceElements(T* into, const T* from, size_t count) {
  Accumulate(kType, kReduce, into, from, count);
}

template <typename T, DataType kType>
const gloo::ReductionFunction<T>* Reduction(ReduceOp reduce) {
  using gloo::ReductionFunction;
  static const ReductionFunction<T> sum(gloo::CUSTOM, &ReduceElements<T, kType, ReduceOp::kSum>);
  static const ReductionFunction<T> prod(gloo::CUSTOM, &ReduceElements<T, kType, ReduceOp::kProd>);
  static const ReductionFunction<T> min(gloo::CUSTOM, &ReduceElements<T, kType, ReduceOp::kMin>);
  static const ReductionFunction<T> max(gloo::CUSTOM, &ReduceElements<T, kType, ReduceOp::kMax>);
  switch (reduce) {
    case ReduceOp::kProd:
      return &prod;
    case ReduceOp::kMin:
      return &min;
    case ReduceOp::kMax:
      return &max;
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      break;
  }
  return &sum;
}

template <typename T>
std::unique_ptr<gloo::Algorithm> MakeAs(const std::shared_ptr<gloo::Context>& context,
                                        const GlooPlans::Kind& kind, void* buffer,
                                        const gloo::ReductionFunction<T>* reduction) {
  const std::vector<T*> pointers{static_cast<T*>(buffer)};
  const int count = static_cast<int>(kind.count);
  if (kind.operation == Operation::kReduceScatter) {
    const std::vector<int> parts(static_cast<size_t>(context->size), count / context->size);
#ifndef __clang_analyzer__  // the analyzer reports a division by zero in Gloo's header
    return std::make_unique<gloo::ReduceScatterHalvingDoubling<T>>(context, pointers, count, parts,
                                                                   reduction);
#endif
  }
  const std::string_view name =
      AlgorithmName(Library::kGloo, Collective::kAllReduce, kind.algorithm);
  if (name == "ring") {
    return std::make_unique<gloo::AllreduceRing<T>>(context, pointers, count, reduction);
  }
  if (name == "ring_chunked") {
    return std::make_unique<gloo::AllreduceRingChunked<T>>(context, pointers, count, reduction);
  }
  if (name == "halving_doubling") {
    return std::make_unique<gloo::AllreduceHalvingDoubling<T>>(context, pointers, count, reduction);
  }
  return std::make_unique<gloo::AllreduceBcube<T>>(context, pointers, count, reduction);
}

std::unique_ptr<gloo::Algorithm> Make(const std::shared_ptr<gloo::Context>& context,
                                      const GlooPlans::Kind& kind, void* buffer) {
  switch (kind.type) {
    case DataType::kF32:
      return MakeAs(context, kind, buffer, Reduction<uint32_t, DataType::kF32>(kind.reduce));
    case DataType::kI32:
      return MakeAs(context, kind, buffer, Reduction<uint32_t, DataType::kI32>(kind.reduce));
    case DataType::kF64:
      return MakeAs(context, kind, buffer, Reduction<uint64_t, DataType::kF64>(kind.reduce));
    case DataType::kI64:
      return MakeAs(context, kind, buffer, Reduction<uint64_t, DataType::kI64>(kind.reduce));
    case DataType::kF16:
      return MakeAs(context, kind, buffer, Reduction<uint16_t, DataType::kF16>(kind.reduce));
    case DataType::kBf16:
      return MakeAs(context, kind, buffer, Reduction<uint16_t, DataType::kBf16>(kind.reduce));
    case DataType::kI8:
      return MakeAs(context, kind, buffer, Reduction<uint8_t, DataType::kI8>(kind.reduce));
    case DataType::kU8:
      break;
  }
  return MakeAs(context, kind, buffer, Reduction<uint8_t, DataType::kU8>(kind.reduce));
}

}  // namespace

Result<GlooPlans::Plan*> GlooPlans::Find(const std::shared_ptr<gloo::Context>& context,
                                         const Kind& kind) {
  const auto found = std::find_if(plans_.begin(), plans_.end(),
                                  [&](const Plan& plan) { return plan.kind == kind; });
  if (found != plans_.end()) {
    plans_.splice(plans_.begin(), plans_, found);
    return &plans_.front();
  }
  Plan plan{kind};
  plan.bytes = kind.count * SizeOf(kind.type);
  plan.buffer = std::make_unique_for_overwrite<std::byte[]>(plan.bytes);
  const Status made = GuardGloo([&] {
    // Slots that depend on the size: messages of ranks that disagree must never match (see Tag in
    // communicator.cc).
    context->nextSlot(1 + static_cast<int>((kind.count * 2654435761U) % 8191));
    plan.algorithm = Make(context, kind, plan.buffer.get());
  });
  if (!made.ok()) return made;
  bytes_ += plan.bytes;
  plans_.push_front(std::move(plan));
  while (plans_.size() > kMostPlans || (bytes_ > kMostBytes && plans_.size() > 1)) {
    bytes_ -= plans_.back().bytes;
    plans_.pop_back();
  }
  return &plans_.front();
}

Status GlooPlans::Run(const std::shared_ptr<gloo::Context>& context, const Kind& kind,
                      const void* in, void* out, size_t out_count) {
  ASSIGN_OR_RETURN(Plan* const plan, Find(context, kind));
  std::byte* buffer = plan->buffer.get();
  std::memcpy(buffer, in, plan->bytes);
  const Status run = GuardGloo([&] { plan->algorithm->run(); });
  if (!run.ok()) return run;
  std::memcpy(out, buffer, out_count * SizeOf(kind.type));
  return {};
}

}  // namespace diapason::comm
