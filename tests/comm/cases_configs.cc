// Calls that say how they are to run (GroupOptions::choose).
#include <set>

#include "base/text.h"
#include "domain/vocabulary.h"
#include "exchange.h"

namespace diapason::conformance {
namespace {

struct Pair {
  Operation operation;
  Collective collective;
};
constexpr Pair kPairs[] = {{Operation::kAllReduce, Collective::kAllReduce},
                           {Operation::kBroadcast, Collective::kBroadcast},
                           {Operation::kReduce, Collective::kReduce},
                           {Operation::kAllGather, Collective::kAllGather},
                           {Operation::kReduceScatter, Collective::kReduceScatter},
                           {Operation::kAllToAll, Collective::kAllToAll}};

std::vector<size_t> Sizes(const Session& session) {
  if (session.settings().quick) return {1023};
  return {1, 1023, 100003};
}

void Plain(Session& session) {
  RunOne(session, session.group(), {Operation::kAllReduce, DataType::kF32, ReduceOp::kSum, 1021});
}

// Says what did not run, once per configuration.
void Try(Session& session, Library library, Collective collective, const Shape& shape) {
  if (RunOrRefuse(session, session.group(), shape)) return;
  session.Note(Format("{} {} refused for {} of {}", std::string(LibraryName(library)),
                      std::string(AlgorithmName(library, collective, shape.config.algorithm)),
                      OperationName(shape.operation), shape.count));
}

void Gloo(Session& session) {
  for (const int algorithm : Algorithms(Library::kGloo, Collective::kAllReduce)) {
    for (const int protocol : Protocols(Library::kGloo)) {
      for (const int channels : {1, 2, 4}) {
        if (session.settings().quick && channels == 2) continue;
        for (const size_t count : Sizes(session)) {
          Shape shape{Operation::kAllReduce, DataType::kF32, ReduceOp::kSum, count, count % 2 == 1};
          shape.config = {algorithm, protocol, channels};
          Try(session, Library::kGloo, Collective::kAllReduce, shape);
        }
        // Not only sums of floats.
        Shape other{Operation::kAllReduce, DataType::kI64, ReduceOp::kMax, 33};
        other.config = {algorithm, protocol, channels};
        Try(session, Library::kGloo, Collective::kAllReduce, other);
      }
    }
  }
}

void OpenMpi(Session& session) {
  for (const Pair& pair : kPairs) {
    for (const int algorithm : Algorithms(Library::kOpenMpi, pair.collective)) {
      for (const int64_t segment : {0, 1024, 65536}) {
        if (session.settings().quick && segment == 65536) continue;
        for (const size_t count : Sizes(session)) {
          Shape shape{pair.operation, DataType::kF32, ReduceOp::kSum,
                      count,          false,          session.size() - 1};
          shape.config.algorithm = algorithm;
          shape.config.segment_bytes = segment;
          Try(session, Library::kOpenMpi, pair.collective, shape);
        }
      }
    }
  }
}

void Nccl(Session& session) {
  for (const Pair& pair : kPairs) {
    for (const int algorithm : Algorithms(Library::kNccl, pair.collective)) {
      for (const int protocol : Protocols(Library::kNccl)) {
        if (!PairExists(pair.collective, algorithm, protocol)) continue;
        for (const int channels : {0, 1, 4}) {
          Shape shape{pair.operation, DataType::kF32, ReduceOp::kSum, 100003};
          shape.config = {algorithm, protocol, channels};
          Try(session, Library::kNccl, pair.collective, shape);
        }
      }
    }
  }
}

void Every(Session& session) {
  const std::string& backend = session.group().backend();
  if (backend == "gloo") Gloo(session);
  if (backend == "mpi") OpenMpi(session);
  if (backend == "nccl" || backend == "rccl" || backend == "sim") Nccl(session);
  Plain(session);
}

// Configurations change from call to call, and apply to the call that names them only.
void Alternating(Session& session) {
  if (session.group().backend() != "gloo" && session.group().backend() != "mpi") return;
  const Library library = session.group().backend() == "gloo" ? Library::kGloo : Library::kOpenMpi;
  const std::vector<int> algorithms = Algorithms(library, Collective::kAllReduce);
  for (size_t i = 0; i < 3 * algorithms.size(); ++i) {
    Shape shape{Operation::kAllReduce, DataType::kF32, ReduceOp::kSum, 500 + i};
    shape.config.algorithm = algorithms[i * 5 % algorithms.size()];
    Try(session, library, Collective::kAllReduce, shape);
    if (i % 3 == 0) Plain(session);
  }
}

// Started, in a group that came from a split, with a wire type and coalesced.
void Elsewhere(Session& session) {
  Group& world = session.group();
  auto split = world.Split(session.rank() % 2, 0);
  session.Fine(split.status(), "split");
  if (!split.ok()) return;
  const int algorithm = world.backend() == "gloo" ? 2 : (world.backend() == "mpi" ? 3 : kRing);
  for (Group* group : {split.value().get(), &world}) {
    Shape shape{Operation::kAllReduce, DataType::kF32, ReduceOp::kSum, 2049};
    shape.seed = 31;
    shape.config.algorithm = algorithm;
    RunOrRefuse(session, *group, shape);
    Exchange exchange(session, *group, shape);
    Work work = group->Start(exchange.call());
    exchange.Verify(work.Wait());
    shape.wire = DataType::kBf16;
    RunOrRefuse(session, *group, shape);
  }
}

void Wrong(Session& session) {
  std::vector<uint8_t> in(64);
  std::vector<uint8_t> out(64);
  const std::pair<Config, const char*> configs[] = {
      {{.algorithm = 99}, "algorithm 99"},       {{.algorithm = -2}, "algorithm -2"},
      {{.protocol = 99}, "protocol 99"},         {{.protocol = -2}, "protocol -2"},
      {{.channels = 1000}, "1000 channels"},     {{.channels = -1}, "-1 channels"},
      {{.segment_bytes = -1}, "segments of -1"}, {{.algorithm = INT32_MIN}, "INT_MIN"}};
  for (const auto& [config, what] : configs) {
    Call call = AllReduceCall(in.data(), out.data(), 4, DataType::kF32);
    call.config = config;
    session.Refused(session.group().Run(call), what);
    Work work = session.group().Start(call);
    session.Refused(work.Wait(), std::string(what) + ", started");
  }
  Plain(session);
  // Send, recv and barrier have nothing to choose.
  Call barrier = BarrierCall();
  barrier.config.algorithm = 1;
  session.Refused(session.group().Run(barrier), "a configuration for barrier");
  Plain(session);
}

}  // namespace

std::vector<Case> ConfigCases() {
  return {{"configurations", Every, true},
          {"configurations alternating", Alternating, true},
          {"configurations elsewhere", Elsewhere, true},
          {"wrong configurations", Wrong, true}};
}

}  // namespace diapason::conformance
