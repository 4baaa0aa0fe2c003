#include "rendezvous/store_server.h"

#include <algorithm>

namespace diapason::rendezvous {
namespace {

FrameServerOptions ConnectionOptions(const StoreServerOptions& options) {
  FrameServerOptions wanted;
  wanted.secret = options.secret;
  wanted.address = options.address;
  wanted.hello_limit = options.hello_limit;
  wanted.who = "rank 0";
  wanted.unproven = "it does not know this job's secret, or has another MASTER_ADDR";
  wanted.log = options.log;
  return wanted;
}

}  // namespace

StoreServer::StoreServer(Socket listener, StoreServerOptions options)
    : FrameServer(std::move(listener), ConnectionOptions(options)),
      options_(std::move(options)),
      size_(options_.size),
      ranks_(static_cast<size_t>(options_.size)) {
  thread_ = std::thread([this] {
    // An error ends the service; the ranks notice it by their closed connections.
    static_cast<void>(Serve().ok());
    SayGoodbye();
  });
}

StoreServer::~StoreServer() {
  Stop();
  thread_.join();
}

std::unique_ptr<FrameServer::Connection> StoreServer::NewConnection() {
  return std::make_unique<RankConnection>();
}

size_t StoreServer::MostUnauthenticated() const {
  return options_.unauthenticated + static_cast<size_t>(std::max(0, size_ - arrived_));
}

void StoreServer::ForEach(const std::function<void(RankConnection*)>& action) {
  for (const auto& [fd, connection] : connections()) {
    if (connection->socket.open()) action(static_cast<RankConnection*>(connection.get()));
  }
}

Deadline StoreServer::EndRound(Deadline now) {
  Deadline next = now + std::chrono::milliseconds(1000);
  ForEach([&](RankConnection* connection) {
    if (connection->waits_for == FrameKind::kHello) return;
    if (now >= connection->deadline) {
      TryAnswer(connection, true);
    } else {
      next = std::min(next, connection->deadline);
    }
  });
  return next;
}

// Replies to waiting requests with the present values, because rank 0 may have given up just before
// the others. Then a short goodbye; a rank that does not read it notices the closed connection.
void StoreServer::SayGoodbye() {
  ForEach([&](RankConnection* connection) {
    TryAnswer(connection, true);
    if (connection->rank >= 0) {
      Send(connection, FrameWriter(FrameKind::kGoodbyeNotice).Take());
    }
  });
}

void StoreServer::Closed(Connection* connection) {
  auto* const of_rank = static_cast<RankConnection*>(connection);
  of_rank->waits_for = FrameKind::kHello;
  const int rank = of_rank->rank;
  if (rank < 0) return;
  Rank& known = ranks_[static_cast<size_t>(rank)];
  if (known.state != Rank::State::kPresent) return;
  known.state = Rank::State::kLost;
  ++gone_;
  Tell(FrameWriter(FrameKind::kLostNotice).Number(static_cast<uint64_t>(rank)).Take());
  AnswerAll();
}

}  // namespace diapason::rendezvous
