#include "rendezvous/frame_link.h"

#include <algorithm>

namespace diapason::rendezvous {

Status FrameLink::Connect(const std::string& host, int port, Deadline deadline) {
  Close();
  in_.Clear();
  limit_ = kUnauthenticatedLimit;
  ASSIGN_OR_RETURN(socket_, ConnectTo(host, port, deadline));
  return {};
}

Status FrameLink::ReadMagic(Deadline deadline) {
  while (in_.rest().size() < kFrameMagic.size()) {
    const Status got = ReceiveSome(socket_, in_.Tail(), deadline);
    if (!got.ok()) return got.WithContext("something listens there that is no store");
    const size_t length = std::min(in_.rest().size(), kFrameMagic.size());
    if (in_.rest().substr(0, length) != kFrameMagic.substr(0, length)) {
      const bool ours = in_.rest().starts_with(kFrameMagic.substr(0, kFrameMagic.size() - 1));
      return Unavailable(ours ? "a store of another version of diapason listens there"
                              : "another program listens there");
    }
  }
  in_.Skip(kFrameMagic.size());
  return {};
}

Result<Frame> FrameLink::Greet(Hello hello, HandshakeInputs shared, Deadline deadline,
                               Deadline reply_by) {
  RETURN_IF_ERROR(ReadMagic(deadline));
  ASSIGN_OR_RETURN(const Frame challenge, Receive(deadline));
  bool wants_proof = false;
  if (challenge.kind != FrameKind::kChallenge) {
    return Unavailable("another program listens there");
  }
  RETURN_IF_ERROR(ReadChallenge(challenge.body, &shared.nonce, &wants_proof));
  if (wants_proof && shared.secret.empty()) {
    return Unavailable(
        "the store there wants to see that this rank knows the job's secret, and this rank has "
        "none: set DIAPASON_SECRET_FILE on every rank, or on none");
  }
  if (!wants_proof && !shared.secret.empty()) {
    return Unavailable(
        "the store there has no secret, and this rank has: set DIAPASON_SECRET_FILE on every rank, "
        "or on none");
  }
  ASSIGN_OR_RETURN(hello.nonce, DrawNonce());
  RETURN_IF_ERROR(Send(std::string(kFrameMagic) + EncodeHello(hello, shared), deadline));
  ASSIGN_OR_RETURN(const Frame reply, Receive(reply_by));
  Frame verdict;
  verdict.kind = reply.kind;
  if (!ReadVerdict(reply.kind, reply.body, hello, shared, &verdict.body)) {
    if (IsUnproven(reply.kind, reply.body)) {
      return Invalid("the store there has another secret than this process");
    }
    return Unavailable("the store there does not know this job's secret");
  }
  limit_ = kAnswerLimit;
  return verdict;
}

Status FrameLink::Send(const std::string& frame, Deadline deadline) {
  return SendAll(socket_, frame, deadline);
}

Result<Frame> FrameLink::Receive(Deadline deadline) {
  for (;;) {
    Frame frame;
    bool damaged = false;
    if (Take(&frame, &damaged)) return frame;
    if (damaged) return Internal("the store sent something that cannot be read");
    RETURN_IF_ERROR(ReceiveSome(socket_, in_.Tail(), deadline));
  }
}

bool FrameLink::Take(Frame* frame, bool* damaged) {
  return in_.Take(limit_, &frame->kind, &frame->body, damaged);
}

Status FrameLink::ReadArrived() {
  return ReceiveSome(socket_, in_.Tail(), std::chrono::steady_clock::now());
}

}  // namespace diapason::rendezvous
