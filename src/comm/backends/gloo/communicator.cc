#include "comm/backends/gloo/communicator.h"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/reduce.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "base/text.h"
#include "comm/check.h"
#include "comm/reduce.h"
#include "domain/vocabulary.h"

namespace diapason::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The domain's numbers of Gloo algorithms.
constexpr int kOptionsRing = 0;
constexpr int kOptionsBcube = 1;
constexpr int kPlainRing = 2;
constexpr int kHalvingDoubling = 4;
constexpr int kBcube = 5;
// Purposes of connections beside the all_reduce algorithms.
constexpr int kOthers = -1;
constexpr int kReduceScatters = -2;
// Slots of sends and receives, apart from those of Gloo's collectives, whose first byte is small.
constexpr uint64_t kPairSlot = uint64_t{0x40} << 56U;
// If every rank first sends a whole part and then receives, blocking sockets deadlock once the part
// is larger than the kernel's buffers.
constexpr size_t kBlockingLimit = size_t{64} << 10U;

milliseconds Left(Deadline deadline) {
  return std::max(milliseconds(1),
                  std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now()));
}

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
uint64_t PairSlot(const Call& call) {
  return kPairSlot | static_cast<uint64_t>(call.count * SizeOf(call.type));
}

const void* At(const void* data, size_t elements, DataType type) {
  return static_cast<const std::byte*>(data) + elements * SizeOf(type);
}

}  // namespace

GlooCommunicator::GlooCommunicator(int rank, std::vector<int> members, std::string name,
                                   rendezvous::RendezvousStore* store,
                                   std::shared_ptr<gloo::transport::Device> device,
                                   milliseconds timeout)
    : rank_(rank),
      members_(std::move(members)),
      name_(std::move(name)),
      store_(store),
      device_(std::move(device)),
      timeout_(timeout) {}

GlooCommunicator::~GlooCommunicator() = default;

Result<std::unique_ptr<Communicator>> GlooCommunicator::Create(
    int rank, std::vector<int> members, std::string name, rendezvous::RendezvousStore* store,
    std::shared_ptr<gloo::transport::Device> device, milliseconds timeout, Deadline deadline) {
  std::unique_ptr<GlooCommunicator> communicator(new GlooCommunicator(
      rank, std::move(members), std::move(name), store, std::move(device), timeout));
  if (communicator->size() > 1) {
    // A send concerns two ranks only, so all ranks connect here and not at the first send.
    RETURN_IF_ERROR(communicator->LineFor({kOthers, GlooWait::kAsync, 0}, deadline));
  }
  return std::unique_ptr<Communicator>(std::move(communicator));
}

Result<GlooCommunicator::Line*> GlooCommunicator::LineFor(const Purpose& purpose,
                                                          Deadline deadline) {
  std::shared_ptr<GlooMesh> mesh;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = lines_.find(purpose); found != lines_.end()) return found->second.get();
    if (closed_) return PeerLost("the connections were closed");
    mesh = std::make_shared<GlooMesh>(rank_, size());
    connecting_.push_back(mesh);
  }
  const auto [use, wait, part] = purpose;
  const std::string key =
      Format("gloo/%s/%d.%d.%d", name_.c_str(), use, static_cast<int>(wait), part);
  const Status connected = mesh->Connect(store_, key, members_, device_, wait, timeout_, deadline);
  const std::lock_guard lock(mutex_);
  std::erase(connecting_, mesh);
  if (!connected.ok()) return connected.WithContext("connecting");
  if (closed_) {
    mesh->Close();
    return PeerLost("the connections were closed");
  }
  auto line = std::make_unique<Line>();
  line->mesh = std::move(mesh);
  return (lines_[purpose] = std::move(line)).get();
}

void GlooCommunicator::Abandon() noexcept {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (const auto& [purpose, line] : lines_) line->mesh->Close();
  for (const std::shared_ptr<GlooMesh>& mesh : connecting_) mesh->Close();
}

void GlooCommunicator::Interrupt(const std::string& /*reason*/) noexcept { Abandon(); }

double GlooCommunicator::LinkPeak() const {
  const int megabits = device_ != nullptr ? device_->getInterfaceSpeed() : 0;
  return megabits > 0 ? megabits * 1e6 / 8 : 0;
}

Status GlooCommunicator::CanRun(const Call& call) const {
  const Config& config = call.config;
  if (call.operation == Operation::kReduceScatter &&
      call.count * static_cast<size_t>(size()) > INT_MAX) {
    return Unavailable("Gloo's reduce_scatter takes at most 2147483647 elements");
  }
  if (config.IsDefault()) return {};
  if (call.operation != Operation::kAllReduce) {
    return Unavailable(
        Format("Gloo offers no choice for %s, only for all_reduce", OperationName(call.operation)));
  }
  if (config.segment_bytes != 0) return Unavailable("Gloo has no segment size");
  const std::vector<int> algorithms = Algorithms(Library::kGloo, Collective::kAllReduce);
  if (config.algorithm != kKeep &&
      std::find(algorithms.begin(), algorithms.end(), config.algorithm) == algorithms.end()) {
    return Invalid(Format("Gloo has no algorithm number %d", config.algorithm));
  }
  const std::vector<int> protocols = Protocols(Library::kGloo);
  if (config.protocol != kKeep &&
      std::find(protocols.begin(), protocols.end(), config.protocol) == protocols.end()) {
    return Invalid(Format("Gloo has no protocol number %d", config.protocol));
  }
  // Gloo's bcube gives wrong results: always if the number of ranks is not a power of two,
  // sometimes with four ranks above 100 KiB.
  if (config.algorithm == kBcube && size() > 2) {
    return Unavailable("Gloo's bcube computes wrong results with more than two ranks");
  }
  if (config.channels < 0 || config.channels > ChannelLimit(Library::kGloo)) {
    return Invalid(
        Format("Gloo's parallel contexts are from 1 to %d", ChannelLimit(Library::kGloo)));
  }
  const bool modern = config.algorithm == kKeep || config.algorithm == kOptionsRing ||
                      config.algorithm == kOptionsBcube;
  if (modern) {
    if (config.protocol > 0) {
      return Unavailable("Gloo's options interface has no blocking or polling sockets");
    }
    return {};
  }
  size_t count = call.count;
  for (const Tensor& tensor : call.tensors) count += tensor.count;
  const auto parts = static_cast<size_t>(std::max(1, config.channels));
  const size_t part = (count + parts - 1) / parts;
  if (part > INT_MAX) {
    return Unavailable("Gloo's older algorithms take at most 2147483647 elements");
  }
  if (config.protocol > 0) {
    // ring sends its whole part at once, the others at most half.
    const size_t bytes = part * SizeOf(call.type);
    if (config.algorithm == kPlainRing && bytes > kBlockingLimit) {
      return Unavailable(
          Format("Gloo's ring with blocking sockets can stop for ever above %zu KiB: every rank "
                 "sends before it receives",
                 kBlockingLimit >> 10U));
    }
  }
  return {};
}

Status GlooCommunicator::Run(const Call& call, Deadline deadline) {
  if (calls_.Idle() || HasPeer(call.operation)) {
    return RunNow(call, deadline);
  }
  return calls_.Add([this, call, deadline] { return RunNow(call, deadline); })->Wait(deadline);
}

Result<std::unique_ptr<PendingCall>> GlooCommunicator::Start(const Call& call, Deadline deadline) {
  if (!HasPeer(call.operation)) {
    return calls_.Add([this, call, deadline] { return RunNow(call, deadline); });
  }
  const bool sends = call.operation == Operation::kSend;
  // Passed to Gloo at once; the queue only waits for the end.
  ASSIGN_OR_RETURN(Line* const line, LineFor({kOthers, GlooWait::kAsync, 0}, deadline));
  std::shared_ptr<gloo::transport::UnboundBuffer> buffer;
  const size_t bytes = call.count * SizeOf(call.type);
  const Status begun = GuardGloo([&] {
    buffer = line->mesh->createUnboundBuffer(sends ? const_cast<void*>(call.in) : call.out, bytes);
    if (sends) {
      buffer->send(call.peer, PairSlot(call), 0, bytes);
    } else {
      buffer->recv(call.peer, PairSlot(call), 0, bytes);
    }
  });
  if (!begun.ok()) return begun;
  return (sends ? sends_ : receives_).Add([buffer, sends, deadline] {
    return GuardGloo([&] {
      const bool done = sends ? buffer->waitSend(Left(deadline)) : buffer->waitRecv(Left(deadline));
      if (!done) throw std::runtime_error("aborted");
    });
  });
}

Status GlooCommunicator::RunAlone(const Call& call) {
  if (call.operation != Operation::kBarrier && call.in != call.out) {
    std::memmove(call.out, call.in, call.count * SizeOf(call.type));
  }
  return {};
}

Status GlooCommunicator::RunNow(const Call& call, Deadline deadline) {
  if (size() == 1) return RunAlone(call);
  switch (call.operation) {
    case Operation::kAllReduce:
      return AllReduce(call, deadline);
    case Operation::kReduceScatter:
      return ReduceScatter(call, deadline);
    default:
      break;
  }
  ASSIGN_OR_RETURN(Line* const line, LineFor({kOthers, GlooWait::kAsync, 0}, deadline));
  if (call.operation == Operation::kReduce) {
    return ReduceToRoot(call, line, Left(deadline));
  }
  return OtherCollective(call, line, Left(deadline));
}

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

Result<std::unique_ptr<Communicator>> GlooCommunicator::Split(const std::vector<int>& members,
                                                              const std::string& name,
                                                              Deadline deadline) {
  if (members.empty()) return std::unique_ptr<Communicator>();
  std::vector<int> job_ranks;
  for (const int member : members) job_ranks.push_back(members_[static_cast<size_t>(member)]);
  const int rank =
      static_cast<int>(std::find(members.begin(), members.end(), rank_) - members.begin());
  return Create(rank, std::move(job_ranks), name, store_, device_, timeout_, deadline);
}

}  // namespace diapason::comm
