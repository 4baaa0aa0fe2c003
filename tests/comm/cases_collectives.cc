// Every operation with every type and reduction, every root, odd counts, sizes from nothing to
// large, in place and out of place, and off their alignment.
#include <cmath>
#include <limits>

#include "base/text.h"
#include "exchange.h"

namespace diapason::conformance {
namespace {

constexpr Operation kReductions[] = {Operation::kAllReduce, Operation::kReduce,
                                     Operation::kReduceScatter};
constexpr Operation kMoves[] = {Operation::kBroadcast, Operation::kAllGather, Operation::kAllToAll};
constexpr Operation kCollectives[] = {Operation::kAllReduce,     Operation::kBroadcast,
                                      Operation::kReduce,        Operation::kAllGather,
                                      Operation::kReduceScatter, Operation::kAllToAll};

bool CanBeInPlace(Operation operation) { return operation != Operation::kAllToAll; }

std::vector<size_t> OddCounts(const Session& session) {
  if (session.settings().quick) return {7, 1023};
  return {1, 3, 1023, 4097};
}

// One of them each time, so that every root is used again and again.
int NextRoot(Session& session) {
  return static_cast<int>(session.NextSeed() % static_cast<uint64_t>(session.size()));
}

void Reductions(Session& session) {
  const bool quick = session.settings().quick;
  for (const Operation operation : kReductions) {
    for (const DataType type : kTypes) {
      for (const ReduceOp reduce : kReduces) {
        const size_t counts[] = {1, 1023};
        for (const size_t count : counts) {
          if (quick && count == 1) continue;
          RunOne(session, session.group(),
                 {operation, type, reduce, count, false, NextRoot(session)});
        }
        RunOne(session, session.group(), {operation, type, reduce, 37, true, NextRoot(session)});
      }
    }
  }
}

void Moves(Session& session) {
  for (const Operation operation : kMoves) {
    for (const DataType type : kTypes) {
      for (const size_t count : OddCounts(session)) {
        RunOne(session, session.group(),
               {operation, type, ReduceOp::kSum, count, false, NextRoot(session)});
        if (!CanBeInPlace(operation)) continue;
        RunOne(session, session.group(),
               {operation, type, ReduceOp::kSum, count, true, NextRoot(session)});
      }
    }
  }
}

void Roots(Session& session) {
  for (const Operation operation : {Operation::kBroadcast, Operation::kReduce}) {
    for (int root = 0; root < session.size(); ++root) {
      for (const bool in_place : {false, true}) {
        RunOne(session, session.group(),
               {operation, DataType::kI32, ReduceOp::kSum, 129, in_place, root});
      }
    }
  }
}

void Counts(Session& session) {
  std::vector<size_t> counts = {1, 2, 3, 7, 8, 15, 31, 64, 65, 255, 1023, 1025, 4097, 8191, 16385};
  if (session.settings().quick) counts = {2, 65, 4097};
  for (const Operation operation : kCollectives) {
    for (const size_t count : counts) {
      const DataType type = count % 4 == 1 ? DataType::kU8 : DataType::kF32;
      RunOne(session, session.group(), {operation, type, ReduceOp::kSum, count, false, 0});
      if (!CanBeInPlace(operation)) continue;
      RunOne(session, session.group(),
             {operation, type, ReduceOp::kMax, count, true, session.size() - 1});
    }
  }
}

void Nothing(Session& session) {
  for (const Operation operation : kCollectives) {
    for (const DataType type : {DataType::kF32, DataType::kI8, DataType::kBf16}) {
      RunOne(session, session.group(),
             {operation, type, ReduceOp::kSum, 0, false, NextRoot(session)});
    }
    // With nothing to move there need not be any memory either.
    Call call{operation};
    call.peer = 0;
    session.Fine(session.group().Run(call),
                 Format("{} of nothing, without memory", OperationName(operation)));
  }
}

void Large(Session& session) {
  const bool quick = session.settings().quick;
  const size_t ranks = static_cast<size_t>(session.size());
  for (const Operation operation : kCollectives) {
    const bool parts = operation == Operation::kAllGather || operation == Operation::kAllToAll ||
                       operation == Operation::kReduceScatter;
    std::vector<size_t> sizes = {size_t{64} << 10, size_t{1} << 20};
    if (!quick) sizes.push_back(size_t{8} << 20);
    for (const size_t bytes : sizes) {
      // The whole of it, whoever holds the parts; and not a multiple of anything.
      const size_t count = bytes / 4 / (parts ? ranks : 1) + 5;
      RunOne(session, session.group(),
             {operation, DataType::kF32, ReduceOp::kSum, count, false, NextRoot(session)});
      if (quick || !CanBeInPlace(operation)) continue;
      RunOne(session, session.group(),
             {operation, DataType::kI64, ReduceOp::kMin, count / 2, true, NextRoot(session)});
    }
  }
  if (quick || ranks > 4) return;
  for (const bool in_place : {false, true}) {
    RunOne(session, session.group(),
           {Operation::kAllReduce, DataType::kF32, ReduceOp::kSum, size_t{16} << 20, in_place, 0});
  }
  RunOne(session, session.group(),
         {Operation::kAllReduce, DataType::kBf16, ReduceOp::kSum, (size_t{32} << 20) - 1, true, 0});
  RunOne(session, session.group(),
         {Operation::kBroadcast, DataType::kU8, ReduceOp::kSum, (size_t{64} << 20) - 3, false,
          NextRoot(session)});
}

void Unaligned(Session& session) {
  for (const Operation operation : kCollectives) {
    for (const DataType type : {DataType::kF32, DataType::kF64, DataType::kBf16, DataType::kI8}) {
      for (const size_t elements : {1, 3}) {
        for (const size_t count : {size_t{5}, size_t{1021}}) {
          RunOne(session, session.group(),
                 {operation, type, ReduceOp::kSum, count, CanBeInPlace(operation) && elements == 3,
                  NextRoot(session), elements * SizeOf(type)});
        }
      }
    }
  }
}

// Where an element itself is off its alignment, the right result or a clear refusal will do.
void OddAddresses(Session& session) {
  for (const Operation operation : kCollectives) {
    const bool ran =
        RunOrRefuse(session, session.group(),
                    {operation, DataType::kF32, ReduceOp::kSum, 33, false, NextRoot(session), 1});
    if (!ran) session.Note(Format("{} refuses odd addresses", OperationName(operation)));
  }
}

// One special value in one rank's input; all ranks must see what arithmetic makes of it.
void Special(Session& session) {
  const Value infinity = std::numeric_limits<Value>::infinity();
  const Value nan = std::numeric_limits<Value>::quiet_NaN();
  const size_t count = 70;
  for (const DataType type : kTypes) {
    if (!IsFloat(type)) continue;
    const size_t width = SizeOf(type);
    Buffer in(session.settings().device, count * width, 0);
    Buffer out(session.settings().device, count * width, 0);
    const bool last = session.rank() == session.size() - 1;
    const bool first = session.rank() == 0;
    for (size_t i = 0; i < count; ++i) {
      Value value = 1;
      if (i % 5 == 1 && last) value = nan;
      if (i % 5 == 2 && first) value = infinity;
      if (i % 5 == 3 && last) value = -infinity;
      if (i % 5 == 4) value = first ? infinity : (last ? -infinity : 1);
      Encode(type, value, in.bytes() + i * width);
    }
    session.Fine(in.Upload() && out.Upload() ? Status() : Internal("upload"), "upload");
    session.Fine(session.group().AllReduce(in.data(), out.data(), count, type), DataTypeName(type));
    session.Expect(out.Download(), "download");
    const Value expected[] = {static_cast<Value>(session.size()), nan, infinity, -infinity,
                              session.size() == 1 ? infinity : nan};
    for (size_t i = 0; i < count; ++i) {
      const Value got = Decode(type, out.bytes() + i * width);
      const Value wanted = expected[i % 5];
      if (got == wanted || (std::isnan(got) && std::isnan(wanted))) continue;
      session.Expect(false, Format("sum of {}: index {}: got {:g}, expected {:g}",
                                   DataTypeName(type), i, got, wanted));
      break;
    }
  }
}

void Coalesced(Session& session) {
  const std::vector<std::vector<size_t>> lists = {
      {5}, {1, 0, 1023, 7, 0}, {0, 0}, {}, {4097, 3, 65536, 1, 1, 1, 255}, {0, 70001}};
  for (const DataType type : {DataType::kF32, DataType::kBf16, DataType::kI64, DataType::kU8}) {
    for (const ReduceOp reduce : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kAvg}) {
      for (const std::vector<size_t>& list : lists) {
        std::vector<Exchange> exchanges;
        exchanges.reserve(list.size());
        std::vector<Tensor> tensors;
        for (size_t i = 0; i < list.size(); ++i) {
          exchanges.emplace_back(session, session.group(),
                                 Shape{Operation::kAllReduce, type, reduce, list[i], i % 2 == 1});
          const Call& call = exchanges.back().call();
          tensors.push_back({call.in, call.out, call.count});
        }
        // A tensor of nothing need not have any memory.
        if (!tensors.empty() && list[0] == 0) tensors[0] = {};
        const Status status = session.group().AllReduce(tensors, type, reduce);
        session.Fine(status, Format("{} tensors", list.size()));
        for (Exchange& exchange : exchanges) exchange.Verify(status);
      }
      if (session.settings().quick) break;
    }
  }
}

void ManyTensors(Session& session) {
  std::vector<Exchange> exchanges;
  exchanges.reserve(300);
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < 300; ++i) {
    exchanges.emplace_back(
        session, session.group(),
        Shape{Operation::kAllReduce, DataType::kF32, ReduceOp::kSum, i * 7 % 501, i % 3 == 0});
    const Call& call = exchanges.back().call();
    tensors.push_back({call.in, call.out, call.count});
  }
  const Status status = session.group().AllReduce(tensors, DataType::kF32);
  for (Exchange& exchange : exchanges) exchange.Verify(status);
}

void Barriers(Session& session) {
  for (int i = 0; i < 5; ++i) session.Fine(session.group().Barrier(), "barrier");
  // Nobody leaves before everybody came: what a rank tells its neighbour before is there after.
  RunOne(session, session.group(), {Operation::kAllGather, DataType::kI32, ReduceOp::kSum, 1});
}

}  // namespace

std::vector<Case> CollectiveCases() {
  return {{"reductions", Reductions, true},
          {"moves", Moves, true},
          {"roots", Roots, true},
          {"counts", Counts, true},
          {"nothing", Nothing, true},
          {"large", Large, true},
          {"unaligned", Unaligned, false},
          {"odd addresses", OddAddresses, false},
          {"special values", Special, true},
          {"coalesced", Coalesced, true},
          {"many tensors", ManyTensors, true},
          {"barrier", Barriers, true}};
}

}  // namespace diapason::conformance
