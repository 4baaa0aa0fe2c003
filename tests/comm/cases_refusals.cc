// Requests that make no sense: a clear error on every rank, and a group that works afterwards.
#include <climits>
#include <cstdint>

#include "base/text.h"
#include "exchange.h"

namespace diapason::conformance {
namespace {

// Refused when run, when started, and both times the group goes on.
void MustRefuse(Session& session, const Call& call, const std::string& what,
                const std::string& word = "") {
  session.Refused(session.group().Run(call), what, word);
  Work work = session.group().Start(call);
  session.Refused(work.Wait(), what + ", started", word);
  session.Expect(work.Done(), what + ": not done after Wait");
  RunOne(session, session.group(), {Operation::kAllReduce, DataType::kI32, ReduceOp::kSum, 3});
}

// Memory enough for every call here, had it been carried out.
struct Room {
  explicit Room(Session& session)
      : in(session.settings().device, 4096 * static_cast<size_t>(session.size()), 0),
        out(session.settings().device, 4096 * static_cast<size_t>(session.size()), 0) {}
  Buffer in;
  Buffer out;
};

void Roots(Session& session) {
  Room room(session);
  void* in = room.in.data();
  void* out = room.out.data();
  const int size = session.size();
  for (const int root : {-1, size, INT_MAX, INT_MIN}) {
    const std::string what = Format("root {}", root);
    MustRefuse(session, BroadcastCall(in, out, 4, DataType::kF32, root), "broadcast, " + what,
               std::to_string(root));
    MustRefuse(session, ReduceCall(in, out, 4, DataType::kF32, ReduceOp::kSum, root),
               "reduce, " + what, std::to_string(root));
    MustRefuse(session, SendCall(in, 4, DataType::kF32, root), "send, " + what);
    MustRefuse(session, RecvCall(out, 4, DataType::kF32, root), "recv, " + what);
    MustRefuse(session, BroadcastCall(in, out, 0, DataType::kF32, root),
               "broadcast of nothing, " + what);
  }
  MustRefuse(session, SendCall(in, 4, DataType::kF32, session.rank()), "send to itself");
  MustRefuse(session, RecvCall(out, 4, DataType::kF32, session.rank()), "recv from itself");
}

void NullPointers(Session& session) {
  Room room(session);
  void* in = room.in.data();
  void* out = room.out.data();
  const DataType type = DataType::kF32;
  // Where only the root reads or writes, only the root can tell; so everybody makes it wrong.
  MustRefuse(session, AllReduceCall(nullptr, out, 4, type), "all_reduce without input");
  MustRefuse(session, AllReduceCall(in, nullptr, 4, type), "all_reduce without output");
  MustRefuse(session, BroadcastCall(nullptr, nullptr, 4, type, 0), "broadcast without memory");
  MustRefuse(session, ReduceCall(nullptr, nullptr, 4, type, ReduceOp::kSum, 0),
             "reduce without memory");
  MustRefuse(session, AllGatherCall(nullptr, out, 4, type), "all_gather without input");
  MustRefuse(session, AllGatherCall(in, nullptr, 4, type), "all_gather without output");
  MustRefuse(session, ReduceScatterCall(nullptr, out, 4, type), "reduce_scatter without input");
  MustRefuse(session, ReduceScatterCall(in, nullptr, 4, type), "reduce_scatter without output");
  MustRefuse(session, AllToAllCall(nullptr, out, 4, type), "all_to_all without input");
  MustRefuse(session, AllToAllCall(in, nullptr, 4, type), "all_to_all without output");
  if (session.size() > 1) {
    const int other = (session.rank() + 1) % session.size();
    MustRefuse(session, SendCall(nullptr, 4, type, other), "send without memory");
    MustRefuse(session, RecvCall(nullptr, 4, type, other), "recv without memory");
  }
  const Tensor tensors[] = {{in, out, 4}, {in, nullptr, 4}};
  MustRefuse(session, CoalescedAllReduceCall(tensors, type), "a tensor without output");
  const Tensor more[] = {{nullptr, out, 4}};
  MustRefuse(session, CoalescedAllReduceCall(more, type), "a tensor without input");
}

void Places(Session& session) {
  Room room(session);
  void* in = room.in.data();
  MustRefuse(session, AllToAllCall(in, in, 4, DataType::kF32), "all_to_all in place", "place");
  if (session.size() < 2) return;
  // Buffers that overlap, without being in place as the operation means it.
  uint8_t* const bytes = static_cast<uint8_t*>(in);
  MustRefuse(session, AllReduceCall(bytes, bytes + 4, 8, DataType::kF32),
             "all_reduce, overlapping by a part");
  const size_t wrong = 4 * static_cast<size_t>((session.rank() + 1) % session.size());
  MustRefuse(session, AllGatherCall(bytes + wrong * 4, bytes, 4, DataType::kF32),
             "all_gather, in place at another rank's part");
  MustRefuse(session, ReduceScatterCall(bytes, bytes + wrong * 4, 4, DataType::kF32),
             "reduce_scatter, in place at another rank's part");
}

void Wires(Session& session) {
  Room room(session);
  void* in = room.in.data();
  void* out = room.out.data();
  const auto with = [](Call call, DataType wire) {
    call.wire = wire;
    return call;
  };
  for (const DataType type : kTypes) {
    if (type == DataType::kF32) continue;
    MustRefuse(session, with(AllReduceCall(in, out, 4, type), DataType::kBf16),
               Format("{} as bf16", DataTypeName(type)));
  }
  for (const DataType wire :
       {DataType::kF64, DataType::kI8, DataType::kU8, DataType::kI32, DataType::kI64}) {
    MustRefuse(session, with(AllReduceCall(in, out, 4, DataType::kF32), wire),
               Format("f32 as {}", DataTypeName(wire)));
  }
  MustRefuse(session, with(BroadcastCall(in, out, 4, DataType::kF32, 0), DataType::kBf16),
             "a wire type for broadcast");
  MustRefuse(session, with(ReduceScatterCall(in, out, 4, DataType::kF32), DataType::kF16),
             "a wire type for reduce_scatter");
}

void Numbers(Session& session) {
  Room room(session);
  void* in = room.in.data();
  void* out = room.out.data();
  // Values that no program can have meant: read from a file, or from memory that was overwritten.
  MustRefuse(session, AllReduceCall(in, out, 4, static_cast<DataType>(99)), "type 99");
  MustRefuse(session, AllReduceCall(in, out, 4, DataType::kF32, static_cast<ReduceOp>(99)),
             "reduction 99");
  Call call = AllReduceCall(in, out, 4, DataType::kF32);
  call.operation = static_cast<Operation>(99);
  MustRefuse(session, call, "operation 99");
  for (const size_t count : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 4, size_t{1} << 60}) {
    const std::string what = Format("{} elements", count);
    MustRefuse(session, AllReduceCall(in, out, count, DataType::kF64), "all_reduce of " + what);
    MustRefuse(session, AllGatherCall(in, out, count, DataType::kF64), "all_gather of " + what);
    MustRefuse(session, ReduceScatterCall(in, out, count, DataType::kF64),
               "reduce_scatter of " + what);
    MustRefuse(session, AllToAllCall(in, out, count, DataType::kF64), "all_to_all of " + what);
    MustRefuse(session, BroadcastCall(in, out, count, DataType::kF64, 0), "broadcast of " + what);
    const Tensor tensors[] = {{in, out, count}, {in, out, count}};
    MustRefuse(session, CoalescedAllReduceCall(tensors, DataType::kF64), "tensors of " + what);
  }
  const Tensor tensors[] = {{in, out, 4}};
  call = BroadcastCall(in, out, 4, DataType::kF32, 0);
  call.tensors = tensors;
  MustRefuse(session, call, "tensors for broadcast");
}

// Without GroupOptions::choose no call may name a configuration.
void Configs(Session& session) {
  if (session.settings().configs) return;
  Room room(session);
  Call call = AllReduceCall(room.in.data(), room.out.data(), 4, DataType::kF32);
  for (const Config& config :
       {Config{1}, Config{.protocol = 1}, Config{.channels = 2}, Config{.segment_bytes = 1024}}) {
    call.config = config;
    MustRefuse(session, call, "a configuration without GroupOptions::choose", "choose");
  }
}

}  // namespace

std::vector<Case> RefusalCases() {
  return {{"refused roots", Roots, true},     {"refused null pointers", NullPointers, true},
          {"refused places", Places, true},   {"refused wires", Wires, true},
          {"refused numbers", Numbers, true}, {"refused configurations", Configs, true}};
}

}  // namespace diapason::conformance
