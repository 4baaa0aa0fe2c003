#include "rendezvous/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace diapason::rendezvous {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  int family() const { return storage.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// IPv4 first, so that "localhost" means the same on every rank, whatever the resolver's order.
Result<std::vector<Address>> Resolve(const std::string& address, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    return NotFound(Format("cannot find the host '{}': {}", address, gai_strerror(error)));
  }
  // Also without memory for the copies.
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, &freeaddrinfo);
  std::vector<Address> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (one->ai_addrlen > sizeof(sockaddr_storage)) continue;
    Address copy;
    std::memcpy(&copy.storage, one->ai_addr, one->ai_addrlen);
    copy.size = one->ai_addrlen;
    addresses.push_back(copy);
  }
  std::stable_partition(addresses.begin(), addresses.end(),
                        [](const Address& one) { return one.family() == AF_INET; });
  return addresses;
}

// The wildcard address, for the same family and port.
Address Anywhere(const Address& like) {
  Address any = like;
  if (like.family() == AF_INET) {
    reinterpret_cast<sockaddr_in*>(&any.storage)->sin_addr.s_addr = htonl(INADDR_ANY);
  } else {
    reinterpret_cast<sockaddr_in6*>(&any.storage)->sin6_addr = in6addr_any;
  }
  return any;
}

// Listens there. 0, or an errno.
int Listen(const Address& one, Socket* listener) {
  Socket socket(::socket(one.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.open()) return errno;
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(socket.get(), one.get(), one.size) != 0) return errno;
  if (listen(socket.get(), SOMAXCONN) != 0) return errno;
  *listener = std::move(socket);
  return 0;
}

// On the first of them that can be listened on.
Result<Socket> ListenOnOne(const std::vector<Address>& places, int port) {
  int last_error = EADDRNOTAVAIL;
  for (const Address& one : places) {
    Socket listener;
    last_error = Listen(one, &listener);
    if (last_error == 0) return listener;
    if (last_error == EADDRINUSE) break;
  }
  return Status::Error(last_error == EADDRINUSE ? ErrorCode::kUnavailable : ErrorCode::kIo,
                       Format("cannot listen on port {}: {}", port, ErrnoText(last_error)));
}

std::string Numeric(const sockaddr_storage& address, socklen_t size, const char* otherwise) {
  char text[INET6_ADDRSTRLEN + 32] = "";
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, text, sizeof(text), nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return otherwise;
  }
  return text;
}

Status WaitFor(const Socket& socket, int16_t events, Deadline deadline) {
  for (;;) {
    pollfd entry{socket.get(), events, 0};
    const int ready = poll(&entry, 1, MillisecondsTo(deadline));
    if (ready > 0) return {};
    if (ready == 0) return TimedOut("no answer in time");
    if (errno != EINTR) return IoError("poll: " + ErrnoText(errno));
  }
}

}  // namespace

void SetStreamOptions(const Socket& socket) {
  const int on = 1;
  const int idle = 10;
  const int interval = 5;
  const int probes = 4;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
  setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
  setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

Result<std::vector<std::string>> NumericAddresses(const std::string& host) {
  ASSIGN_OR_RETURN(const std::vector<Address> found, Resolve(host, 0));
  std::vector<std::string> addresses;
  for (const Address& one : found) {
    const std::string text = Numeric(one.storage, one.size, "");
    if (!text.empty()) addresses.push_back(text);
  }
  return addresses;
}

Result<Socket> ListenOnExactly(const std::string& address, int port) {
  ASSIGN_OR_RETURN(const std::vector<Address> addresses, Resolve(address, port));
  return ListenOnOne(addresses, port);
}

Result<Socket> ListenOn(const std::string& address, int port) {
  ASSIGN_OR_RETURN(std::vector<Address> places, Resolve(address, port));
  const size_t own = places.size();
  for (size_t i = 0; i < own; ++i) places.push_back(Anywhere(places[i]));
  return ListenOnOne(places, port);
}

int LocalPort(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return address.ss_family == AF_INET6
             ? ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port)
             : ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

Result<Socket> ConnectTo(const std::string& address, int port, Deadline deadline) {
  ASSIGN_OR_RETURN(const std::vector<Address> addresses, Resolve(address, port));
  std::string problem = "no address";
  for (const Address& one : addresses) {
    Socket socket(::socket(one.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.open()) {
      problem = ErrnoText(errno);
      continue;
    }
    SetStreamOptions(socket);
    int error = connect(socket.get(), one.get(), one.size) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      RETURN_IF_ERROR(WaitFor(socket, POLLOUT, deadline));
      socklen_t size = sizeof(error);
      getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
    // A connection to a free port of this host can connect to itself.
    sockaddr_storage here{};
    sockaddr_storage there{};
    socklen_t here_size = sizeof(here);
    socklen_t there_size = sizeof(there);
    if (error == 0 &&
        getsockname(socket.get(), reinterpret_cast<sockaddr*>(&here), &here_size) == 0 &&
        getpeername(socket.get(), reinterpret_cast<sockaddr*>(&there), &there_size) == 0 &&
        here_size == there_size &&
        std::equal(reinterpret_cast<char*>(&here), reinterpret_cast<char*>(&here) + here_size,
                   reinterpret_cast<char*>(&there))) {
      error = ECONNREFUSED;
    }
    if (error == 0) return socket;
    problem = ErrnoText(error);
  }
  return Unavailable(Format("cannot connect to {} port {}: ", address, port) + problem);
}

Status SendAll(const Socket& socket, const std::string& bytes, Deadline deadline) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t count =
        ::send(socket.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count > 0) {
      sent += static_cast<size_t>(count);
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return PeerLost(ErrnoText(errno));
    RETURN_IF_ERROR(WaitFor(socket, POLLOUT, deadline));
  }
  return {};
}

Status ReceiveSome(const Socket& socket, std::string* buffer, Deadline deadline) {
  char bytes[16384];
  for (;;) {
    const ssize_t count = ::recv(socket.get(), bytes, sizeof(bytes), 0);
    if (count > 0) {
      buffer->append(bytes, static_cast<size_t>(count));
      return {};
    }
    if (count == 0) return PeerLost("the connection was closed");
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return PeerLost(ErrnoText(errno));
    RETURN_IF_ERROR(WaitFor(socket, POLLIN, deadline));
  }
}

std::string LocalAddress(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) size = 0;
  return Numeric(address, size, "127.0.0.1");
}

std::string PeerAddress(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getpeername(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) size = 0;
  return Numeric(address, size, "?");
}

}  // namespace diapason::rendezvous
