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

// Non-blocking TCP, IPv4 and IPv6, every wait with a deadline. No descriptor survives an exec.

// Listens on the port, on the first of the addresses that `address` stands for which this host has;
// on all of them where it has none of these: the address is then one that leads here from outside
// (a container's, a service's). Fails with kUnavailable where the port is in use.
Result<Socket> ListenOn(const std::string& address, int port);
// One attempt; kUnavailable when nobody listens there (yet).
Result<Socket> ConnectTo(const std::string& address, int port, Deadline deadline);
Status SendAll(const Socket& socket, const std::string& bytes, Deadline deadline);
// Appends what is there to `buffer`, waiting for the first byte; kPeerLost at the end of the
// stream.
Status ReceiveSome(const Socket& socket, std::string* buffer, Deadline deadline);
// The numeric address of our end of a connection.
std::string LocalAddress(const Socket& socket);
// And of the other end; "?" when it is gone.
std::string PeerAddress(const Socket& socket);
// This machine's name.
std::string HostName();

// Milliseconds from now to the deadline, for poll(); 0 when it has passed.
int MillisecondsTo(Deadline deadline);

}  // namespace diapason::rendezvous
