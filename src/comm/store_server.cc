#include "comm/store_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "base/version.h"
#include "comm/store.h"

namespace diapason::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A stranger that connects and says nothing is sent away after this long.
constexpr milliseconds kHelloLimit{10000};
constexpr size_t kStrangers = 256;

std::string CollectKey(const std::string& key, int rank) {
  return key + "/" + std::to_string(rank);
}

}  // namespace

StoreServer::StoreServer(Socket listener, int size, std::string token)
    : listener_(std::move(listener)),
      size_(size),
      token_(std::move(token)),
      ranks_(static_cast<size_t>(size)) {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
    wake_read_ = Socket(ends[0]);
    wake_write_ = Socket(ends[1]);
  }
  thread_ = std::thread([this] { Serve(); });
}

StoreServer::~StoreServer() {
  stop_.store(true);
  const ssize_t written = ::write(wake_write_.fd(), "x", 1);
  static_cast<void>(written);  // without it the thread looks within a second
  thread_.join();
}

void StoreServer::Serve() {
  std::vector<pollfd> entries;
  while (!stop_.load()) {
    entries.clear();
    entries.push_back({wake_read_.fd(), POLLIN, 0});
    entries.push_back({listener_.fd(), POLLIN, 0});
    Deadline next = steady_clock::now() + milliseconds(1000);
    for (const auto& [fd, connection] : connections_) {
      const auto events = static_cast<int16_t>(connection->out.empty() ? POLLIN : POLLIN | POLLOUT);
      entries.push_back({fd, events, 0});
      if (connection->waits_for != FrameKind::kHello) next = std::min(next, connection->deadline);
    }
    if (poll(entries.data(), entries.size(), MillisecondsTo(next) + 1) < 0 && errno != EINTR) break;
    for (size_t i = 2; i < entries.size(); ++i) {
      const auto found = connections_.find(entries[i].fd);
      if (found == connections_.end() || entries[i].revents == 0) continue;
      Connection* connection = found->second.get();
      if ((entries[i].revents & POLLOUT) != 0) Flush(connection);
      if (connection->socket.open() && (entries[i].revents & ~POLLOUT) != 0) Receive(connection);
    }
    if ((entries[1].revents & POLLIN) != 0) Accept();
    const Deadline now = steady_clock::now();
    for (const auto& [fd, connection] : connections_) {
      if (connection->waits_for != FrameKind::kHello && now >= connection->deadline) {
        TryAnswer(connection.get(), true);
      }
      if (connection->rank < 0 && now >= connection->opened + kHelloLimit) Drop(connection.get());
      if (connection->closing && connection->out.empty()) Drop(connection.get());
    }
    std::erase_if(connections_, [](const auto& one) { return !one.second->socket.open(); });
  }
  // Who waits is told what there is: perhaps rank 0 gave up a moment before it would have. Then a
  // short goodbye; who does not take it learns from the closed connection.
  const std::string goodbye = FrameWriter(FrameKind::kGoodbyeNotice).Take();
  for (const auto& [fd, connection] : connections_) {
    if (connection->socket.open()) TryAnswer(connection.get(), true);
    if (connection->rank >= 0 && connection->socket.open()) {
      connection->out += goodbye;
      Flush(connection.get());
    }
  }
}

void StoreServer::Accept() {
  for (;;) {
    Socket socket(accept4(listener_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.open()) return;
    if (connections_.size() >= static_cast<size_t>(size_) + kStrangers) continue;
    auto connection = std::make_unique<Connection>();
    connection->opened = steady_clock::now();
    const int fd = socket.fd();
    connection->socket = std::move(socket);
    // Whoever it is learns at once whom it talks to.
    connection->out = kFrameMagic;
    connections_[fd] = std::move(connection);
    Flush(connections_[fd].get());
  }
}

void StoreServer::Receive(Connection* connection) {
  const Status got = ReceiveSome(connection->socket, &connection->in, steady_clock::now());
  if (!got.ok()) {
    if (got.code() == ErrorCode::kPeerLost) Drop(connection);
    return;
  }
  if (connection->rank < 0) {
    // Before its hello a client may send the magic words and one small frame.
    const size_t length = std::min(connection->in.size(), kFrameMagic.size());
    if (connection->in.compare(0, length, kFrameMagic, 0, length) != 0 ||
        connection->in.size() > 4096) {
      Drop(connection);
      return;
    }
    if (connection->in.size() < kFrameMagic.size()) return;
  }
  size_t skip = connection->rank < 0 ? kFrameMagic.size() : 0;
  std::string buffer = connection->in.substr(skip);
  FrameKind kind{};
  std::string body;
  bool damaged = false;
  bool any = false;
  while (connection->socket.open() && !connection->closing &&
         TakeFrame(&buffer, &kind, &body, &damaged)) {
    any = true;
    Handle(connection, kind, body);
  }
  if (damaged) {
    Drop(connection);
    return;
  }
  if (any) connection->in = std::move(buffer);
}

void StoreServer::Flush(Connection* connection) {
  while (!connection->out.empty()) {
    const ssize_t sent = ::send(connection->socket.fd(), connection->out.data(),
                                connection->out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      connection->out.erase(0, static_cast<size_t>(sent));
    } else if (sent < 0 && errno == EINTR) {
      continue;
    } else {
      if (errno != EAGAIN && errno != EWOULDBLOCK) Drop(connection);
      return;
    }
  }
}

std::string StoreServer::Who(int rank) const {
  const Rank& one = ranks_[static_cast<size_t>(rank)];
  if (one.state == Rank::State::kAbsent) return Format("rank %d", rank);
  return Format("rank %d (host %s, process %llu)", rank, one.host.c_str(),
                static_cast<unsigned long long>(one.process));
}

void StoreServer::Refuse(Connection* connection, const std::string& why) {
  connection->out += FrameWriter(FrameKind::kRefused).Text(why).Take();
  connection->closing = true;
  connection->waits_for = FrameKind::kHello;
  Flush(connection);
}

void StoreServer::Hello(Connection* connection, const std::string& body) {
  FrameReader reader(body);
  const std::string version(reader.Text());
  const std::string token(reader.Text());
  const uint64_t rank = reader.Number();
  const uint64_t size = reader.Number();
  const std::string host(reader.Text());
  const uint64_t process = reader.Number();
  if (!reader.ok()) {
    Drop(connection);
    return;
  }
  const std::string newcomer =
      Format("rank %llu (host %s, process %llu)", static_cast<unsigned long long>(rank),
             host.c_str(), static_cast<unsigned long long>(process));
  const auto rank_count = static_cast<uint64_t>(size_);
  std::string why;
  if (token != token_) {
    Refuse(connection, "another job listens on this port: set MASTER_PORT to a free one");
    return;
  }
  if (version != kVersion) {
    why = Format("%s runs diapason %s and rank 0 %s", newcomer.c_str(), version.c_str(), kVersion);
  } else if (size != rank_count) {
    why = Format("%s was started for %llu ranks and rank 0 for %d", newcomer.c_str(),
                 static_cast<unsigned long long>(size), size_);
  } else if (rank >= rank_count) {
    why = Format("%s does not exist among %d ranks", newcomer.c_str(), size_);
  } else {
    const Rank& known = ranks_[rank];
    if (known.state == Rank::State::kLeft || known.state == Rank::State::kLost) {
      // This group is over for that rank: it wants the next one on this port.
      connection->out += FrameWriter(FrameKind::kLater).Take();
      connection->closing = true;
      Flush(connection);
      return;
    }
    if (known.state == Rank::State::kPresent) {
      why = "rank " + std::to_string(rank) + " was started twice: " + Who(static_cast<int>(rank)) +
            " and " + newcomer;
    }
  }
  if (!why.empty()) {
    Refuse(connection, why);
    // While the ranks still gather, one that cannot belong means that the job is started wrongly.
    if (arrived_ < size_) {
      fatal_ = why;
      AnswerAll();
    }
    return;
  }
  connection->rank = static_cast<int>(rank);
  ranks_[rank] = {Rank::State::kPresent, host, process};
  ++arrived_;
  connection->out += FrameWriter(FrameKind::kFine).Take();
  Flush(connection);
}

void StoreServer::Handle(Connection* connection, FrameKind kind, const std::string& body) {
  FrameReader reader(body);
  if (connection->rank < 0 && kind != FrameKind::kHello) {
    Drop(connection);
    return;
  }
  const auto wait = [&](uint64_t limit) {
    connection->waits_for = kind;
    connection->deadline = steady_clock::now() + milliseconds(std::min<uint64_t>(limit, 60000));
    TryAnswer(connection, false);
  };
  switch (kind) {
    case FrameKind::kHello:
      if (connection->rank < 0) {
        Hello(connection, body);
      } else {
        Drop(connection);
      }
      return;
    case FrameKind::kSet: {
      const std::string key(reader.Text());
      const std::string value(reader.Text());
      if (!reader.ok()) break;
      values_[key] = value;
      connection->out += FrameWriter(FrameKind::kFine).Take();
      Flush(connection);
      AnswerAll();
      return;
    }
    case FrameKind::kGet: {
      connection->key = reader.Text();
      const uint64_t limit = reader.Number();
      if (!reader.ok()) break;
      wait(limit);
      return;
    }
    case FrameKind::kCollect: {
      connection->key = reader.Text();
      connection->members = reader.Ranks(static_cast<uint64_t>(size_));
      const bool has_value = reader.Number() != 0;
      const std::string value(reader.Text());
      connection->until_loss = reader.Number() != 0;
      const uint64_t limit = reader.Number();
      if (!reader.ok()) break;
      connection->first_missing = 0;
      if (has_value) {
        values_[CollectKey(connection->key, connection->rank)] = value;
        AnswerAll();
      }
      wait(limit);
      return;
    }
    case FrameKind::kGiveUp: {
      const std::string group(reader.Text());
      if (!reader.ok()) break;
      Tell(FrameWriter(FrameKind::kGaveUpNotice)
               .Number(static_cast<uint64_t>(connection->rank))
               .Text(group)
               .Take());
      return;
    }
    case FrameKind::kGoodbye:
      ranks_[static_cast<size_t>(connection->rank)].state = Rank::State::kLeft;
      connection->closing = true;
      AnswerAll();
      return;
    default:
      break;
  }
  Drop(connection);
}

bool StoreServer::Collected(Connection* connection, bool at_deadline) {
  bool missing = false;
  bool gone = false;
  size_t& first = connection->first_missing;
  for (size_t i = first; i < connection->members.size(); ++i) {
    const int member = connection->members[i];
    if (values_.contains(CollectKey(connection->key, member))) {
      if (i == first) ++first;
      continue;
    }
    const Rank::State state = ranks_[static_cast<size_t>(member)].state;
    if (state == Rank::State::kLost || state == Rank::State::kLeft) {
      gone = true;
    } else {
      missing = true;
      // Nothing is decided before this one has answered, unless a loss would end the wait.
      if (!connection->until_loss && !at_deadline) break;
    }
  }
  return !missing || at_deadline || (gone && connection->until_loss);
}

void StoreServer::TryAnswer(Connection* connection, bool at_deadline) {
  const FrameKind kind = connection->waits_for;
  if (kind == FrameKind::kHello) return;
  if (!fatal_.empty()) {
    Refuse(connection, fatal_);
    return;
  }
  if (kind == FrameKind::kGet) {
    const auto found = values_.find(connection->key);
    if (found != values_.end()) {
      connection->out += FrameWriter(FrameKind::kFine).Text(found->second).Take();
    } else if (at_deadline) {
      connection->out += FrameWriter(FrameKind::kNotYet).Take();
    } else {
      return;
    }
  } else {
    if (!Collected(connection, at_deadline)) return;
    FrameWriter answer(FrameKind::kFine);
    answer.Number(connection->members.size());
    for (const int member : connection->members) {
      const auto found = values_.find(CollectKey(connection->key, member));
      const Rank::State state = ranks_[static_cast<size_t>(member)].state;
      Answer::State said = Answer::State::kMissing;
      if (found != values_.end()) {
        said = Answer::State::kGiven;
      } else if (state == Rank::State::kLost) {
        said = Answer::State::kLost;
      } else if (state == Rank::State::kLeft) {
        said = Answer::State::kLeft;
      }
      answer.Number(static_cast<uint64_t>(said));
      answer.Text(found != values_.end() ? found->second : "");
      answer.Text(said == Answer::State::kGiven ? "" : Who(member));
    }
    connection->out += answer.Take();
  }
  connection->waits_for = FrameKind::kHello;
  Flush(connection);
}

void StoreServer::AnswerAll() {
  for (const auto& [fd, connection] : connections_) {
    if (connection->socket.open()) TryAnswer(connection.get(), false);
  }
}

void StoreServer::Tell(const std::string& frame) {
  for (const auto& [fd, connection] : connections_) {
    if (connection->rank < 0 || connection->closing || !connection->socket.open()) continue;
    connection->out += frame;
    Flush(connection.get());
  }
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

}  // namespace diapason::comm
