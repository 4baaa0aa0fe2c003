#pragma once

#include <string>

#include "base/clock.h"
#include "base/status.h"

namespace diapason::rendezvous {

// A file descriptor that closes itself.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() { Close(); }
  Socket(Socket&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Socket& operator=(Socket&& other) noexcept;
  void Close();
  int fd() const { return fd_; }
  bool open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Non-blocking TCP, IPv4 and IPv6; every wait has a deadline. Descriptors are close-on-exec.

// Listens on the port, on the first address of `address` that this host has; on all addresses if it
// has none of them: `address` is then one that leads here from outside (of a container, of a
// service). Fails with kUnavailable if the port is in use.
Result<Socket> ListenOn(const std::string& address, int port);
// One attempt; kUnavailable if no process listens there (yet).
Result<Socket> ConnectTo(const std::string& address, int port, Deadline deadline);
Status SendAll(const Socket& socket, const std::string& bytes, Deadline deadline);
// Waits for data and appends it to `buffer`; kPeerLost at the end of the stream.
Status ReceiveSome(const Socket& socket, std::string* buffer, Deadline deadline);
// The numeric address of the local end of a connection.
std::string LocalAddress(const Socket& socket);
// And of the peer; "?" if it is gone.
std::string PeerAddress(const Socket& socket);
// This machine's name.
std::string HostName();

// Milliseconds until the deadline, for poll(); 0 if it has passed.
int MillisecondsTo(Deadline deadline);

}  // namespace diapason::rendezvous
