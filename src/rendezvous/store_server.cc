#include "rendezvous/store_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"

namespace diapason::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// New connections per round, before the ranks are served again.
constexpr int kAcceptsInARow = 64;
// How long the listener is paused when no descriptors are left.
constexpr milliseconds kAcceptPause{100};
// A rank with this much unread data is not read from either.
constexpr size_t kMostUnread = size_t{1} << 20U;

}  // namespace

StoreServer::StoreServer(Socket listener, StoreServerOptions options)
    : listener_(std::move(listener)),
      options_(std::move(options)),
      size_(options_.size),
      ranks_(static_cast<size_t>(options_.size)),
      turned_away_(options_.log) {
  if (Result<Pipe> wake = MakePipe(O_NONBLOCK); wake.ok()) wake_ = std::move(wake).value();
  thread_ = std::thread([this] { Serve(); });
}

StoreServer::~StoreServer() {
  stop_.store(true);
  const ssize_t written = ::write(wake_.write.get(), "x", 1);
  static_cast<void>(written);  // without it the thread checks within a second
  thread_.join();
}

Deadline StoreServer::Prepare(std::vector<pollfd>* entries) {
  const Deadline now = steady_clock::now();
  Deadline next = now + milliseconds(1000);
  const bool pause = now < accept_after_;
  if (pause) next = std::min(next, accept_after_);
  entries->clear();
  entries->push_back({wake_.read.get(), POLLIN, 0});
  entries->push_back({pause ? -1 : listener_.get(), POLLIN, 0});
  for (const auto& [fd, connection] : connections_) {
    int events = connection->pending() > kMostUnread ? 0 : POLLIN;
    if (connection->pending() > 0) events |= POLLOUT;
    entries->push_back({fd, static_cast<int16_t>(events), 0});
    if (connection->waits_for != FrameKind::kHello) next = std::min(next, connection->deadline);
    if (connection->rank < 0) next = std::min(next, connection->opened + options_.hello_limit);
  }
  return next;
}

void StoreServer::Serve() {
  std::vector<pollfd> entries;
  while (!stop_.load()) {
    const Deadline next = Prepare(&entries);
    if (poll(entries.data(), entries.size(), MillisecondsTo(next) + 1) < 0 && errno != EINTR) break;
    for (size_t i = 2; i < entries.size(); ++i) {
      const auto found = connections_.find(entries[i].fd);
      if (found == connections_.end() || entries[i].revents == 0) continue;
      Connection* connection = found->second.get();
      if ((entries[i].revents & POLLOUT) != 0) {
        Flush(connection);
        TakeFrames(connection);  // frames that had to wait
      }
      if (connection->socket.open() && (entries[i].revents & ~POLLOUT) != 0) Receive(connection);
    }
    if ((entries[1].revents & POLLIN) != 0) Accept();
    CheckDeadlines();
    std::erase_if(connections_, [](const auto& one) { return !one.second->socket.open(); });
  }
  SayGoodbye();
}

void StoreServer::CheckDeadlines() {
  const Deadline now = steady_clock::now();
  for (const auto& [fd, connection] : connections_) {
    if (connection->waits_for != FrameKind::kHello && now >= connection->deadline) {
      TryAnswer(connection.get(), true);
    }
    if (connection->closing && connection->pending() == 0) Drop(connection.get());
    if (connection->unauthenticated() && now >= connection->opened + options_.hello_limit) {
      TurnAway(connection.get(), "it did not say in time which rank it is");
    }
  }
}

// Replies to waiting requests with the present values, because rank 0 may have given up just before
// the others. Then a short goodbye; a rank that does not read it notices the closed connection.
void StoreServer::SayGoodbye() {
  for (const auto& [fd, connection] : connections_) {
    if (connection->socket.open()) TryAnswer(connection.get(), true);
    if (connection->rank >= 0 && connection->socket.open()) {
      Send(connection.get(), FrameWriter(FrameKind::kGoodbyeNotice).Take());
    }
  }
}

void StoreServer::Accept() {
  for (int i = 0; i < kAcceptsInARow; ++i) {
    Socket socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.open()) {
      Welcome(std::move(socket));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
    if (DropOldestUnauthenticated()) continue;
    accept_after_ = steady_clock::now() + kAcceptPause;
    return;
  }
}

void StoreServer::Welcome(Socket socket) {
  const size_t unauthenticated = static_cast<size_t>(
      std::count_if(connections_.begin(), connections_.end(),
                    [](const auto& one) { return one.second->unauthenticated(); }));
  const size_t expected = static_cast<size_t>(std::max(0, size_ - arrived_));
  if (unauthenticated >= options_.unauthenticated + expected) DropOldestUnauthenticated();
  Result<std::string> nonce = DrawNonce();
  if (!nonce.ok()) return;
  auto connection = std::make_unique<Connection>();
  connection->opened = steady_clock::now();
  connection->nonce = std::move(nonce).value();
  const int fd = socket.get();
  connection->socket = std::move(socket);
  Connection* const kept = (connections_[fd] = std::move(connection)).get();
  // Identifies the store to every peer at once.
  Send(kept, std::string(kFrameMagic) +
                 EncodeChallenge({options_.secret, options_.address, kept->nonce}));
}

bool StoreServer::DropOldestUnauthenticated() {
  Connection* oldest = nullptr;
  for (const auto& [fd, connection] : connections_) {
    if (!connection->unauthenticated()) continue;
    if (oldest == nullptr || connection->opened < oldest->opened) oldest = connection.get();
  }
  if (oldest == nullptr) return false;
  TurnAway(oldest, "there are too many connections that say nothing");
  return true;
}

void StoreServer::Receive(Connection* connection) {
  const Status got = ReceiveSome(connection->socket, connection->in.Tail(), steady_clock::now());
  if (!got.ok()) {
    if (got.code() == ErrorCode::kPeerLost) Drop(connection);
    return;
  }
  TakeFrames(connection);
}

// False: it is incomplete or wrong.
bool StoreServer::TakeMagic(Connection* connection) {
  if (connection->greeted) return true;
  const std::string_view said = connection->in.rest().substr(0, kFrameMagic.size());
  if (said != kFrameMagic.substr(0, said.size())) {
    TurnAway(connection, "it speaks another language, or another version of this one");
    return false;
  }
  if (said.size() < kFrameMagic.size()) return false;
  connection->in.Skip(kFrameMagic.size());
  connection->greeted = true;
  return true;
}

void StoreServer::TakeFrames(Connection* connection) {
  if (!connection->socket.open() || !TakeMagic(connection)) return;
  FrameKind kind{};
  std::string body;
  bool damaged = false;
  while (connection->socket.open() && !connection->closing &&
         connection->pending() <= kMostUnread) {
    const uint32_t limit = connection->rank < 0 ? kUnauthenticatedLimit : RequestLimit(size_);
    if (!connection->in.Take(limit, &kind, &body, &damaged)) break;
    if (connection->rank >= 0) {
      Handle(connection, kind, body);
    } else if (kind == FrameKind::kHello) {
      Hear(connection, body);
    } else {
      TurnAway(connection, "it asks before it has said which rank it is");
    }
  }
  if (damaged) TurnAway(connection, "it sends what no rank sends");
}

void StoreServer::Send(Connection* connection, const std::string& frame) {
  connection->out += frame;
  Flush(connection);
}

void StoreServer::Flush(Connection* connection) {
  while (connection->socket.open() && connection->pending() > 0) {
    const ssize_t count =
        ::send(connection->socket.get(), connection->out.data() + connection->sent,
               connection->pending(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      connection->sent += static_cast<size_t>(count);
    } else if (count >= 0 || errno != EINTR) {
      if (count >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) Drop(connection);
      break;
    }
  }
  if (connection->pending() == 0) {
    std::string().swap(connection->out);
    connection->sent = 0;
  } else if (connection->sent > connection->out.size() / 2) {
    connection->out.erase(0, connection->sent);
    connection->sent = 0;
  }
}

void StoreServer::TurnAway(Connection* connection, const std::string& why) {
  if (!connection->socket.open()) return;
  turned_away_.Note(PeerAddress(connection->socket), why);
  Drop(connection);
}

void StoreServer::Drop(Connection* connection) {
  if (!connection->socket.open()) return;
  connection->socket.Close();
  connection->waits_for = FrameKind::kHello;
  const int rank = connection->rank;
  if (rank < 0) return;
  Rank& known = ranks_[static_cast<size_t>(rank)];
  if (known.state != Rank::State::kPresent) return;
  known.state = Rank::State::kLost;
  Tell(FrameWriter(FrameKind::kLostNotice).Number(static_cast<uint64_t>(rank)).Take());
  AnswerAll();
}

}  // namespace diapason::rendezvous
