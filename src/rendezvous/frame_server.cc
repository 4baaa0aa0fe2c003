#include "rendezvous/frame_server.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/file.h"

namespace diapason::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr size_t kMostEvents = 512;
// New connections per round, before the others are served again.
constexpr int kAcceptsInARow = 64;
// How long the listener is paused when no descriptors are left.
constexpr milliseconds kAcceptPause{100};
// A peer with this much unread data is not read from either.
constexpr size_t kMostUnread = size_t{1} << 20U;

}  // namespace

FrameServer::FrameServer(Socket listener, FrameServerOptions options)
    : listener_(std::move(listener)),
      options_(std::move(options)),
      turned_away_(options_.who, options_.log) {
  if (Result<Pipe> wake = MakePipe(O_NONBLOCK); wake.ok()) wake_ = std::move(wake).value();
  epoll_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
}

void FrameServer::Stop() {
  stop_.store(true);
  const ssize_t written = ::write(wake_.write.get(), "x", 1);
  static_cast<void>(written);  // without it the thread checks within a second
}

Status FrameServer::Prepare() {
  for (const int fd : {wake_.read.get(), listener_.get()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return IoError("cannot wait for connections: " + ErrnoText(errno));
    }
  }
  accepts_ = true;
  return {};
}

Status FrameServer::Serve() {
  RETURN_IF_ERROR(Prepare());
  std::array<epoll_event, kMostEvents> events{};
  Deadline next = steady_clock::now();
  while (!stop_.load()) {
    const int wait = next <= steady_clock::now() ? 0 : MillisecondsTo(next) + 1;
    const int ready = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(kMostEvents),
                                   std::min(wait, 1000));
    if (ready < 0 && errno != EINTR) return IoError("epoll: " + ErrnoText(errno));
    bool arrived = false;
    for (int i = 0; i < ready; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if (event.data.fd == wake_.read.get()) continue;
      if (event.data.fd == listener_.get()) {
        arrived = true;
      } else {
        HandleEvent(event.data.fd, event.events);
      }
    }
    const Deadline now = steady_clock::now();
    next = std::min(EndRound(now), CheckHelloLimit(now));
    RemoveClosed();
    if (!accepts_ && now >= accept_after_) arrived = true;
    if (arrived) Accept();
    if (!accepts_) next = std::min(next, accept_after_);
  }
  return {};
}

void FrameServer::HandleEvent(int fd, uint32_t events) {
  const auto found = connections_.find(fd);
  if (found == connections_.end() || !found->second->socket.open()) return;
  Connection* const connection = found->second.get();
  if ((events & EPOLLOUT) != 0) {
    Flush(connection);
    TakeFrames(connection);  // frames that had to wait
  }
  if (connection->socket.open() && (events & ~uint32_t{EPOLLOUT}) != 0) Receive(connection);
}

// Tells epoll what is waited for, if that has changed.
void FrameServer::Watch(Connection* connection) {
  if (!connection->socket.open()) return;
  uint32_t wanted = connection->pending() > kMostUnread ? 0 : uint32_t{EPOLLIN};
  if (connection->pending() > 0) wanted |= EPOLLOUT;
  if (wanted == connection->watched) return;
  epoll_event event{};
  event.events = wanted;
  event.data.fd = connection->socket.get();
  const int change = connection->watched.has_value() ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (::epoll_ctl(epoll_.get(), change, event.data.fd, &event) != 0) return Drop(connection);
  connection->watched = wanted;
}

Deadline FrameServer::CheckHelloLimit(Deadline now) {
  while (!unauthenticated_.empty()) {
    Connection* const oldest = unauthenticated_.front();
    const Deadline limit = oldest->opened + options_.hello_limit;
    if (now < limit) return limit;
    TurnAway(oldest, "it did not authenticate in time");
  }
  return now + milliseconds(1000);
}

void FrameServer::RemoveClosed() {
  for (const int fd : closed_) {
    const auto found = connections_.find(fd);
    if (found != connections_.end() && !found->second->socket.open()) connections_.erase(found);
  }
  closed_.clear();
}

void FrameServer::Accept() {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = listener_.get();
  for (int i = 0; i < kAcceptsInARow; ++i) {
    Socket socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.open()) {
      RemoveClosed();  // one of them may have had this descriptor
      Welcome(std::move(socket));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) break;
    if (DropOldestUnauthenticated()) continue;
    // The listener stays readable: epoll must not report it meanwhile.
    accept_after_ = steady_clock::now() + kAcceptPause;
    if (accepts_) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), &event);
    accepts_ = false;
    return;
  }
  if (!accepts_) accepts_ = ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event) == 0;
}

void FrameServer::Welcome(Socket socket) {
  const bool full = connections_.size() >= options_.connections;
  if (full || unauthenticated_.size() >= MostUnauthenticated()) {
    if (!DropOldestUnauthenticated() && full) return;
    RemoveClosed();
  }
  Result<std::string> nonce = DrawNonce();
  if (!nonce.ok()) return;
  const int fd = socket.get();
  std::unique_ptr<Connection> made = NewConnection();
  SetStreamOptions(socket);
  made->opened = steady_clock::now();
  made->socket = std::move(socket);
  Connection* const connection = (connections_[fd] = std::move(made)).get();
  connection->place = unauthenticated_.insert(unauthenticated_.end(), connection);
  connection->nonce = std::move(nonce).value();
  // Identifies the server to every peer at once.
  Send(connection, std::string(kFrameMagic) +
                       EncodeChallenge({options_.secret, options_.address, connection->nonce}));
}

bool FrameServer::DropOldestUnauthenticated() {
  if (unauthenticated_.empty()) return false;
  TurnAway(unauthenticated_.front(), "there are too many connections that say nothing");
  return true;
}

void FrameServer::Receive(Connection* connection) {
  const Status got = ReceiveSome(connection->socket, connection->in.Tail(), steady_clock::now());
  if (!got.ok()) {
    if (got.code() == ErrorCode::kPeerLost) Drop(connection);
    return;
  }
  TakeFrames(connection);
}

// False: it is incomplete or wrong.
bool FrameServer::TakeMagic(Connection* connection) {
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

bool FrameServer::Ready(const Connection& connection) const {
  return connection.pending() <= kMostUnread;
}

void FrameServer::TakeFrames(Connection* connection) {
  if (!connection->socket.open() || !TakeMagic(connection)) return;
  FrameKind kind{};
  std::string body;
  bool damaged = false;
  while (connection->socket.open() && !connection->closing && Ready(*connection)) {
    const uint32_t limit = connection->authenticated ? MostRequest() : kUnauthenticatedLimit;
    if (!connection->in.Take(limit, &kind, &body, &damaged)) break;
    if (connection->authenticated) {
      Handle(connection, kind, body);
    } else if (kind == FrameKind::kHello) {
      HearHello(connection, body);
    } else {
      TurnAway(connection, "it asks before it has authenticated");
    }
  }
  if (damaged) TurnAway(connection, "it sends what no client sends");
}

void FrameServer::HearHello(Connection* connection, const std::string& body) {
  Hello hello;
  if (!ReadHello(body, &hello)) {
    TurnAway(connection, "its hello cannot be read");
  } else if (!ProvesItself(hello, {options_.secret, options_.address, connection->nonce})) {
    RefuseUnproven(connection);
  } else {
    Hear(connection, hello);
  }
}

void FrameServer::RefuseUnproven(Connection* connection) {
  if (!options_.tell_unproven) return TurnAway(connection, options_.unproven);
  NoteTurnedAway(*connection, options_.unproven);
  connection->closing = true;
  Send(connection, EncodeUnproven());
}

void FrameServer::Judge(Connection* connection, FrameKind kind, const std::string& text,
                        const Hello& hello) {
  if (kind != FrameKind::kFine) {
    connection->closing = true;
  } else if (!connection->authenticated) {
    connection->authenticated = true;
    unauthenticated_.erase(connection->place);
  }
  Send(connection,
       EncodeVerdict(kind, text, hello, {options_.secret, options_.address, connection->nonce}));
}

void FrameServer::CloseWhenSent(Connection* connection) {
  connection->closing = true;
  Flush(connection);
}

void FrameServer::Send(Connection* connection, const std::string& frame) {
  if (!connection->socket.open()) return;
  connection->out += frame;
  Flush(connection);
}

void FrameServer::Flush(Connection* connection) {
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
    if (connection->closing) return Drop(connection);
  } else if (connection->sent > connection->out.size() / 2) {
    connection->out.erase(0, connection->sent);
    connection->sent = 0;
  }
  Watch(connection);
}

void FrameServer::NoteTurnedAway(const Connection& connection, const std::string& why) {
  turned_away_.Note(PeerAddress(connection.socket), why);
}

void FrameServer::TurnAway(Connection* connection, const std::string& why) {
  if (!connection->socket.open()) return;
  NoteTurnedAway(*connection, why);
  Drop(connection);
}

void FrameServer::Drop(Connection* connection) {
  if (!connection->socket.open()) return;
  if (!connection->authenticated) unauthenticated_.erase(connection->place);
  closed_.push_back(connection->socket.get());
  connection->socket.Close();
  Closed(connection);
}

}  // namespace diapason::rendezvous
