#include "comm/backends/gloo/communicator.h"

#include <gloo/barrier.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "base/text.h"
#include "comm/backends/gloo/call_details.h"
#include "comm/check.h"
#include "comm/reduce.h"
#include "domain/vocabulary.h"

namespace diapason::comm {

using namespace gloo_details;  // NOLINT(google-build-using-namespace): made for this
using std::chrono::milliseconds;
using std::chrono::steady_clock;

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
  const std::string key = Format("gloo/{}/{}.{}.{}", name_, use, static_cast<int>(wait), part);
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
        Format("Gloo offers no choice for {}, only for all_reduce", OperationName(call.operation)));
  }
  if (config.segment_bytes != 0) return Unavailable("Gloo has no segment size");
  const std::vector<int> algorithms = Algorithms(Library::kGloo, Collective::kAllReduce);
  if (config.algorithm != kKeep &&
      std::find(algorithms.begin(), algorithms.end(), config.algorithm) == algorithms.end()) {
    return Invalid(Format("Gloo has no algorithm number {}", config.algorithm));
  }
  const std::vector<int> protocols = Protocols(Library::kGloo);
  if (config.protocol != kKeep &&
      std::find(protocols.begin(), protocols.end(), config.protocol) == protocols.end()) {
    return Invalid(Format("Gloo has no protocol number {}", config.protocol));
  }
  // Gloo's bcube gives wrong results: always if the number of ranks is not a power of two,
  // sometimes with four ranks above 100 KiB.
  if (config.algorithm == kBcube && size() > 2) {
    return Unavailable("Gloo's bcube computes wrong results with more than two ranks");
  }
  if (config.channels < 0 || config.channels > ChannelLimit(Library::kGloo)) {
    return Invalid(
        Format("Gloo's parallel contexts are from 1 to {}", ChannelLimit(Library::kGloo)));
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
          Format("Gloo's ring with blocking sockets can stop for ever above {} KiB: every rank "
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
