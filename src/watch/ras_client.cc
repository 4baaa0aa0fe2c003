#include "watch/ras_client.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/file.h"
#include "base/text.h"
#include "watch/socket_owner.h"

namespace diapason::watch {
namespace {

constexpr std::array kConnections = {1, 4, 8, 8, 8};  // opened at once, one number after the other
constexpr size_t kMostLine = 4096;
constexpr size_t kMostAddresses = 4;
constexpr double kStopCheck = 0.1;

struct RasAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  std::string text;
};

struct AddressList {
  addrinfo* first = nullptr;
  ~AddressList() {
    if (first != nullptr) freeaddrinfo(first);
  }
};

Status AddAddresses(const std::string& host, const std::string& port,
                    std::vector<RasAddress>* addresses) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  AddressList list;
  const int failed = getaddrinfo(host.c_str(), port.c_str(), &hints, &list.first);
  if (failed != 0) {
    return Invalid(Format("the address of RAS '{}' is unknown: {}", host, gai_strerror(failed)));
  }
  for (const addrinfo* one = list.first; one != nullptr; one = one->ai_next) {
    if (addresses->size() == kMostAddresses) break;
    char numeric[64] = "";
    if (one->ai_addrlen > sizeof(sockaddr_storage) ||
        getnameinfo(one->ai_addr, one->ai_addrlen, numeric, sizeof numeric, nullptr, 0,
                    NI_NUMERICHOST) != 0) {
      continue;
    }
    RasAddress address;
    std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    address.size = one->ai_addrlen;
    address.text = one->ai_family == AF_INET6 ? Format("[{}]:{}", numeric, port)
                                              : Format("{}:{}", numeric, port);
    addresses->push_back(std::move(address));
  }
  return {};
}

Result<std::vector<RasAddress>> Resolve(const std::string& text) {
  const size_t colon = text.rfind(':');
  uint64_t port = 0;
  if (colon == std::string::npos || colon == 0 || !ParseUnsigned(text.substr(colon + 1), &port) ||
      port == 0 || port > 65535) {
    return Invalid("'" + text + "' is no address of RAS; NCCL_RAS_ADDR has the form HOST:PORT");
  }
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  std::vector<RasAddress> addresses;
  // NCCL takes the first address that the host's files have for it: either.
  const bool here = host == "localhost";
  for (const char* one : {here ? "127.0.0.1" : host.c_str(), here ? "::1" : nullptr}) {
    if (one != nullptr) RETURN_IF_ERROR(AddAddresses(one, text.substr(colon + 1), &addresses));
  }
  return addresses;
}

// One connection to a RAS thread: sends lines, and collects what comes back.
class RasConnection {
 public:
  RasConnection(Descriptor fd, const RasAddress* address) : fd_(std::move(fd)), address_(address) {}

  int fd() const { return fd_.get(); }
  const RasAddress& address() const { return *address_; }
  bool failed() const { return failed_; }
  bool ended() const { return ended_; }
  std::string* received() { return &received_; }

  void Send(std::string_view line) { unsent_ += line; }

  short Events() const { return static_cast<short>(POLLIN | (unsent_.empty() ? 0 : POLLOUT)); }

  void Handle(short events) {
    if ((events & POLLOUT) != 0 && !unsent_.empty()) {
      const ssize_t sent = send(fd(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) unsent_.erase(0, static_cast<size_t>(sent));
      if (sent < 0 && errno != EAGAIN && errno != EINTR) failed_ = true;
    }
    if ((events & (POLLIN | POLLHUP | POLLERR)) == 0) return;
    char buffer[16384];
    const ssize_t got = recv(fd(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got > 0) received_.append(buffer, static_cast<size_t>(got));
    if (got == 0) ended_ = true;
    if (got < 0 && errno != EAGAIN && errno != EINTR) failed_ = true;
    if (received_.size() > kMostRasBytes) failed_ = true;
  }

  // A whole line that has arrived, without its end.
  bool TakeLine(std::string* line) {
    const size_t end = received_.find('\n');
    if (end == std::string::npos) {
      failed_ |= received_.size() > kMostLine;
      return false;
    }
    *line = received_.substr(0, end);
    if (line->ends_with('\r')) line->pop_back();
    received_.erase(0, end + 1);
    return true;
  }

 private:
  Descriptor fd_;
  const RasAddress* address_;
  std::string unsent_;
  std::string received_;
  bool failed_ = false;
  bool ended_ = false;
};

using Connections = std::vector<std::unique_ptr<RasConnection>>;

bool Stopped(const RasQuestion& question) {
  return question.stop != nullptr && question.stop->load(std::memory_order_relaxed);
}

// Waits for events of the connections, at most until the deadline.
void WaitFor(const Connections& connections, double deadline_s) {
  std::vector<pollfd> polled;
  polled.reserve(connections.size());
  for (const auto& connection : connections) {
    polled.push_back({connection->fd(), connection->Events(), 0});
  }
  const double left = std::clamp(deadline_s - SteadySeconds(), 0.0, kStopCheck);
  if (poll(polled.data(), polled.size(), static_cast<int>(std::ceil(left * 1000))) <= 0) return;
  for (size_t i = 0; i < polled.size(); ++i) connections[i]->Handle(polled[i].revents);
}

// Begins connections; those that are refused at once are left out.
Connections OpenConnections(const std::vector<RasAddress>& addresses, int number) {
  Connections connections;
  for (const RasAddress& address : addresses) {
    for (int i = 0; i < number; ++i) {
      Descriptor fd(
          socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      if (!fd.open()) continue;
      const auto* where = reinterpret_cast<const sockaddr*>(&address.storage);
      if (connect(fd.get(), where, address.size) != 0 && errno != EINPROGRESS) continue;
      connections.push_back(std::make_unique<RasConnection>(std::move(fd), &address));
      connections.back()->Send("CLIENT PROTOCOL 2\n");
    }
  }
  return connections;
}

struct Tried {
  bool connected = false;   // at least one connection was accepted
  bool other_jobs = false;  // a process of another job answered
  std::string not_ras;      // the first line of a server that is no RAS
};

// The first connection that a process of the job answers; null for none.
std::unique_ptr<RasConnection> Greeted(const RootFs& tree, const RasQuestion& question,
                                       Connections connections, Tried* tried, pid_t* owner) {
  const double deadline = SteadySeconds() + question.handshake_s;
  while (!connections.empty() && SteadySeconds() < deadline && !Stopped(question)) {
    WaitFor(connections, deadline);
    for (auto& connection : connections) {
      std::string line;
      if (!connection->TakeLine(&line)) continue;
      tried->connected = true;
      if (!line.starts_with("SERVER PROTOCOL ")) {
        tried->not_ras = line.substr(0, 64);
        connection.reset();
        continue;
      }
      const SocketOwner found = OwnerOfPeer(tree, connection->fd(), question.job);
      *owner = found.pid;
      if (found.pid != 0 || !found.readable) return std::move(connection);
      tried->other_jobs = true;
      connection.reset();
    }
    std::erase_if(connections, [](const auto& connection) {
      return connection == nullptr || connection->failed() || connection->ended();
    });
  }
  // A stopped process is connected, and silent.
  for (const auto& connection : connections) {
    tried->connected |= (connection->Events() & POLLOUT) == 0;
  }
  return nullptr;
}

// The answer to one line; fails if the connection ends, or with the deadline.
Result<std::string> LineOf(const RasQuestion& question, const Connections& one, double deadline) {
  std::string line;
  while (!one[0]->TakeLine(&line)) {
    if (one[0]->failed() || one[0]->ended()) return Invalid("RAS closed the connection");
    if (SteadySeconds() >= deadline || Stopped(question)) {
      return TimedOut("RAS does not answer at " + one[0]->address().text);
    }
    WaitFor(one, deadline);
  }
  return line;
}

Result<RasAnswer> Converse(const RasQuestion& question, const Connections& one) {
  const double deadline = SteadySeconds() + question.answer_s;
  RasConnection& connection = *one[0];
  // RAS waits this long for a process that is silent, and then 5 s more.
  connection.Send("TIMEOUT 1\n");
  ASSIGN_OR_RETURN(const std::string timeout, LineOf(question, one, deadline));
  if (timeout != "OK") return Invalid("RAS refuses a timeout: " + timeout.substr(0, 64));
  // NCCL before 2.28.7 does not know the command, and answers in text.
  connection.Send("SET FORMAT json\n");
  RETURN_IF_ERROR(LineOf(question, one, deadline));
  connection.Send("VERBOSE STATUS\n");
  while (!connection.ended()) {
    if (connection.failed())
      return Invalid("the connection to RAS broke, or its answer is too long");
    if (SteadySeconds() >= deadline || Stopped(question)) {
      return TimedOut(Format("RAS has not answered within {:g} s at {}", question.answer_s,
                             connection.address().text));
    }
    WaitFor(one, deadline);
  }
  return ParseRasAnswer(*connection.received());
}

}  // namespace

Result<RasReply> AskRas(const RootFs& tree, const RasQuestion& question) {
  ASSIGN_OR_RETURN(const std::vector<RasAddress> addresses, Resolve(question.address));
  Tried tried;
  for (const int number : kConnections) {
    if (Stopped(question)) break;
    RasReply reply;
    std::unique_ptr<RasConnection> connection =
        Greeted(tree, question, OpenConnections(addresses, number), &tried, &reply.answered_by);
    if (connection == nullptr) {
      if (!tried.connected && !tried.other_jobs) break;  // no listener
      continue;
    }
    reply.address = connection->address().text;
    Connections one;
    one.push_back(std::move(connection));
    ASSIGN_OR_RETURN(reply.answer, Converse(question, one));
    return reply;
  }
  const std::string place = addresses.empty() ? question.address : addresses[0].text;
  if (tried.other_jobs) {
    return Unavailable("another job answers at " + place + ": no process of this job did");
  }
  if (!tried.not_ras.empty()) return Invalid("the server at " + place + " is not NCCL's RAS");
  if (tried.connected) return TimedOut("RAS does not answer at " + place);
  return NotFound("no process listens at " + place +
                  ": NCCL does from 2.24 on, unless NCCL_RAS_ENABLE=0");
}

}  // namespace diapason::watch
