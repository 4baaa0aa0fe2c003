// f32 that travels as bf16 or f16.
#include <cmath>
#include <cstring>

#include "base/text.h"
#include "exchange.h"

namespace diapason::conformance {
namespace {

constexpr DataType kNarrow[] = {DataType::kBf16, DataType::kF16};

void Rounding(Session& session) {
  for (const DataType wire : kNarrow) {
    for (const ReduceOp reduce : kReduces) {
      for (const size_t count : {size_t{1}, size_t{7}, size_t{4097}}) {
        for (const bool in_place : {false, true}) {
          Shape shape{Operation::kAllReduce, DataType::kF32, reduce, count, in_place};
          shape.wire = wire;
          RunOne(session, session.group(), shape);
        }
      }
    }
    Shape large{Operation::kAllReduce, DataType::kF32, ReduceOp::kSum, 300001, true};
    large.wire = wire;
    RunOne(session, session.group(), large);
    Shape shifted{Operation::kAllReduce, DataType::kF32, ReduceOp::kSum, 1001, false, 0, 4};
    shifted.wire = wire;
    RunOne(session, session.group(), shifted);
    Shape nothing{Operation::kAllReduce, DataType::kF32, ReduceOp::kSum, 0};
    nothing.wire = wire;
    RunOne(session, session.group(), nothing);
  }
}

void Coalesced(Session& session) {
  for (const DataType wire : kNarrow) {
    std::vector<Exchange> exchanges;
    exchanges.reserve(8);
    std::vector<Tensor> tensors;
    for (const size_t count : {3, 0, 1023, 1, 65537}) {
      Shape shape{Operation::kAllReduce, DataType::kF32, ReduceOp::kSum, count, count % 3 == 0};
      shape.wire = wire;
      exchanges.emplace_back(session, session.group(), shape);
      const Call& call = exchanges.back().call();
      tensors.push_back({call.in, call.out, call.count});
    }
    Call call = CoalescedAllReduceCall(tensors, DataType::kF32);
    call.wire = wire;
    const Status status = session.group().Run(call);
    for (Exchange& exchange : exchanges) exchange.Verify(status);
  }
}

void Async(Session& session) {
  std::vector<Exchange> exchanges;
  exchanges.reserve(6);
  std::vector<Work> works;
  for (size_t i = 0; i < 6; ++i) {
    Shape shape{Operation::kAllReduce, DataType::kF32, ReduceOp::kSum, 501 * i + 1, i % 2 == 0};
    shape.wire = kNarrow[i % 2];
    exchanges.emplace_back(session, session.group(), shape);
    works.push_back(session.group().Start(exchanges.back().call()));
  }
  for (size_t i = 0; i < 6; ++i) exchanges[i].Verify(works[i].Wait());
}

// A NaN whose payload lies only in the bits that the narrow type drops, or that rounding would
// carry out of, is still a NaN; what is too large for f16 is infinite, and nothing else suffers.
void Special(Session& session) {
  const uint32_t bits[] = {0x7f800001, 0x7fffffff, 0xffffffff, 0xff800001, 0x7f800000,
                           0xff800000, 0x3f800000, 0x7f7fffff, 0x00000001, 0x80000000};
  const size_t count = std::size(bits);
  for (const DataType wire : kNarrow) {
    Buffer in(session.settings().device, count * 4, 0);
    Buffer out(session.settings().device, count * 4, 0);
    std::memset(in.bytes(), 0, count * 4);
    if (session.rank() == 0) std::memcpy(in.bytes(), bits, sizeof bits);
    session.Expect(in.Upload() && out.Upload(), "upload");
    Call call = AllReduceCall(in.data(), out.data(), count, DataType::kF32);
    call.wire = wire;
    session.Fine(session.group().Run(call), "special values");
    session.Expect(out.Download(), "download");
    for (size_t i = 0; i < count; ++i) {
      const Value given = Decode(DataType::kF32, &bits[i]);
      const Value wanted = session.size() == 1 ? given : RoundTo(wire, given);
      const Value got = Decode(DataType::kF32, out.bytes() + i * 4);
      const bool alone = session.size() == 1 && got == RoundTo(wire, given);
      session.Expect(got == wanted || alone || (std::isnan(got) && std::isnan(wanted)),
                     Format("0x{:08x} as {}: got {:g}, expected {:g}", bits[i], DataTypeName(wire),
                            got, wanted));
    }
  }
}

}  // namespace

std::vector<Case> WireCases() {
  return {{"wire rounding", Rounding, true},
          {"wire coalesced", Coalesced, true},
          {"wire async", Async, true},
          {"wire special values", Special, true}};
}

}  // namespace diapason::conformance
