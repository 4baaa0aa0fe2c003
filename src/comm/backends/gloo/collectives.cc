// The collectives of GlooCommunicator; communicator.cc has its connections and calls.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/reduce.h>

#include <cstring>

#include "comm/backends/gloo/call_details.h"
#include "comm/backends/gloo/communicator.h"
#include "comm/check.h"
#include "comm/reduce.h"
#include "domain/vocabulary.h"

namespace diapason::comm {

using namespace gloo_details;  // NOLINT(google-build-using-namespace): made for this

namespace {

using std::chrono::milliseconds;

std::function<void(void*, const void*, const void*, size_t)> Reducer(DataType type,
                                                                     ReduceOp reduce) {
  return [type, reduce](void* out, const void* a, const void* b, size_t count) {
    Combine(type, reduce, out, a, b, count);
  };
}

// Gloo's options need only the width of an element.
template <typename Options>
void SetIn(Options* options, DataType type, const void* in, size_t count) {
  void* data = const_cast<void*>(in);
  switch (SizeOf(type)) {
    case 1:
      return options->setInput(static_cast<uint8_t*>(data), count);
    case 2:
      return options->setInput(static_cast<uint16_t*>(data), count);
    case 4:
      return options->setInput(static_cast<uint32_t*>(data), count);
    default:
      return options->setInput(static_cast<uint64_t*>(data), count);
  }
}
template <typename Options>
void SetOut(Options* options, DataType type, void* out, size_t count) {
  switch (SizeOf(type)) {
    case 1:
      return options->setOutput(static_cast<uint8_t*>(out), count);
    case 2:
      return options->setOutput(static_cast<uint16_t*>(out), count);
    case 4:
      return options->setOutput(static_cast<uint32_t*>(out), count);
    default:
      return options->setOutput(static_cast<uint64_t*>(out), count);
  }
}

int ChosenAlgorithm(const Call& call) {
  return call.config.algorithm == kKeep ? kOptionsRing : call.config.algorithm;
}

// Gloo ends the process if a message is larger than expected for its tag. With the size as part of
// the tag, ranks that disagree never match: the call reaches its time limit, and the error says
// what each of them was doing.
uint32_t Tag(const Call& call) {
  uint64_t hash = 1469598103934665603U;
  for (const uint64_t part : {static_cast<uint64_t>(call.operation),
                              static_cast<uint64_t>(call.count), static_cast<uint64_t>(call.type),
                              Reduces(call.operation) ? static_cast<uint64_t>(call.reduce) : 0,
                              HasRoot(call.operation) ? static_cast<uint64_t>(call.peer) : 0}) {
    hash = (hash ^ part) * 1099511628211U;
  }
  return static_cast<uint32_t>(hash >> 32U);
}
const void* At(const void* data, size_t elements, DataType type) {
  return static_cast<const std::byte*>(data) + elements * SizeOf(type);
}

}  // namespace

Status GlooCommunicator::ReduceScatter(const Call& call, Deadline deadline) {
  if (PowerOfTwo()) {
    ASSIGN_OR_RETURN(Line* const line, LineFor({kReduceScatters, GlooWait::kAsync, 0}, deadline));
    const GlooPlans::Kind kind{call.operation, kHalvingDoubling, call.type, call.reduce,
                               call.count * static_cast<size_t>(size())};
    const Status status = line->plans.Run(line->mesh, kind, call.in, call.out, call.count);
    if (status.ok()) Finish(call.type, call.reduce, call.out, call.count, size());
    return status;
  }
  // Gloo's own gives wrong results for some counts then. Every rank receives the parts meant for it
  // and adds them up in rank order, which moves no more bytes than any other algorithm.
  const size_t part = call.count * SizeOf(call.type);
  std::vector<std::byte> parts(part * static_cast<size_t>(size()));
  Call exchange = AllToAllCall(call.in, parts.data(), call.count, call.type);
  ASSIGN_OR_RETURN(Line* const line, LineFor({kOthers, GlooWait::kAsync, 0}, deadline));
  RETURN_IF_ERROR(OtherCollective(exchange, line, Left(deadline)));
  std::memcpy(call.out, parts.data(), part);
  for (int rank = 1; rank < size(); ++rank) {
    Accumulate(call.type, call.reduce, call.out, parts.data() + part * static_cast<size_t>(rank),
               call.count);
  }
  Finish(call.type, call.reduce, call.out, call.count, size());
  return {};
}

Status GlooCommunicator::AllReduce(const Call& call, Deadline deadline) {
  const auto parts = std::min(static_cast<size_t>(std::max(1, call.config.channels)), call.count);
  Status status;
  if (parts == 1) {
    status = AllReducePart(call, 0, deadline);
  } else {
    // In order, on this thread: if several contexts connected concurrently, ranks could wait for
    // each other in different orders.
    for (size_t part = 0; part < parts; ++part) {
      RETURN_IF_ERROR(AllReduceLine(call, static_cast<int>(part), deadline));
    }
    status = lanes_.Run(parts, [&](size_t part) {
      Call piece = call;
      const size_t begin = call.count * part / parts;
      piece.count = call.count * (part + 1) / parts - begin;
      piece.in = At(call.in, begin, call.type);
      piece.out = const_cast<void*>(At(call.out, begin, call.type));
      return AllReducePart(piece, static_cast<int>(part), deadline);
    });
  }
  if (status.ok()) Finish(call.type, call.reduce, call.out, call.count, size());
  return status;
}

Result<GlooCommunicator::Line*> GlooCommunicator::AllReduceLine(const Call& call, int part,
                                                                Deadline deadline) {
  const auto wait = static_cast<GlooWait>(std::max(0, call.config.protocol));
  return LineFor({ChosenAlgorithm(call), wait, part}, deadline);
}

Status GlooCommunicator::AllReducePart(const Call& call, int part, Deadline deadline) {
  const int algorithm = ChosenAlgorithm(call);
  ASSIGN_OR_RETURN(Line* const line, AllReduceLine(call, part, deadline));
  if (algorithm != kOptionsRing && algorithm != kOptionsBcube) {
    const GlooPlans::Kind kind{call.operation, algorithm, call.type, call.reduce, call.count};
    return line->plans.Run(line->mesh, kind, call.in, call.out, call.count);
  }
  return GuardGloo([&] {
    gloo::AllreduceOptions options(line->mesh);
    options.setAlgorithm(algorithm == kOptionsRing ? gloo::AllreduceOptions::Algorithm::RING
                                                   : gloo::AllreduceOptions::Algorithm::BCUBE);
    if (call.in != call.out) SetIn(&options, call.type, call.in, call.count);
    SetOut(&options, call.type, call.out, call.count);
    options.setReduceFunction(Reducer(call.type, call.reduce));
    options.setTimeout(Left(deadline));
    options.setTag(Tag(call));
    gloo::allreduce(options);
  });
}

Status GlooCommunicator::ReduceToRoot(const Call& call, Line* line, milliseconds limit) {
  // Gloo uses the output buffer on every rank; the caller provides one on the root only.
  void* out = call.out;
  if (rank_ != call.peer) {
    scratch_.resize(call.count * SizeOf(call.type));
    out = scratch_.data();
  }
  const Status status = GuardGloo([&] {
    gloo::ReduceOptions options(line->mesh);
    if (call.in != out) SetIn(&options, call.type, call.in, call.count);
    SetOut(&options, call.type, out, call.count);
    options.setRoot(call.peer);
    options.setReduceFunction(Reducer(call.type, call.reduce));
    options.setTimeout(limit);
    options.setTag(Tag(call));
    gloo::reduce(options);
  });
  if (status.ok() && rank_ == call.peer) {
    Finish(call.type, call.reduce, call.out, call.count, size());
  }
  // A large buffer is freed: it would otherwise live as long as the group.
  if (scratch_.size() > (size_t{1} << 20U)) std::vector<std::byte>().swap(scratch_);
  return status;
}

Status GlooCommunicator::OtherCollective(const Call& call, Line* line, milliseconds limit) {
  const std::shared_ptr<GlooMesh>& mesh = line->mesh;
  const size_t bytes = call.count * SizeOf(call.type);
  const size_t whole = call.count * static_cast<size_t>(size());
  return GuardGloo([&] {
    switch (call.operation) {
      case Operation::kBroadcast: {
        gloo::BroadcastOptions options(mesh);
        if (rank_ == call.peer && call.in != call.out) {
          SetIn(&options, call.type, call.in, call.count);
        }
        SetOut(&options, call.type, call.out, call.count);
        options.setRoot(call.peer);
        options.setTimeout(limit);
        options.setTag(Tag(call));
        return gloo::broadcast(options);
      }
      case Operation::kAllGather: {
        gloo::AllgatherOptions options(mesh);
        if (call.in != At(call.out, call.count * static_cast<size_t>(rank_), call.type)) {
          SetIn(&options, call.type, call.in, call.count);
        }
        SetOut(&options, call.type, call.out, whole);
        options.setTimeout(limit);
        options.setTag(Tag(call));
        return gloo::allgather(options);
      }
      case Operation::kAllToAll: {
        gloo::AlltoallOptions options(mesh);
        SetIn(&options, call.type, call.in, whole);
        SetOut(&options, call.type, call.out, whole);
        options.setTimeout(limit);
        options.setTag(Tag(call));
        return gloo::alltoall(options);
      }
      case Operation::kSend: {
        const auto buffer = mesh->createUnboundBuffer(const_cast<void*>(call.in), bytes);
        buffer->send(call.peer, PairSlot(call), 0, bytes);
        if (!buffer->waitSend(limit)) throw std::runtime_error("aborted");
        return;
      }
      case Operation::kRecv: {
        const auto buffer = mesh->createUnboundBuffer(call.out, bytes);
        buffer->recv(call.peer, PairSlot(call), 0, bytes);
        if (!buffer->waitRecv(limit)) throw std::runtime_error("aborted");
        return;
      }
      case Operation::kBarrier: {
        gloo::BarrierOptions options(mesh);
        options.setTimeout(limit);
        return gloo::barrier(options);
      }
      case Operation::kAllReduce:
      case Operation::kReduce:
      case Operation::kReduceScatter:
        throw std::logic_error("has a function of its own");
    }
  });
}

}  // namespace diapason::comm
