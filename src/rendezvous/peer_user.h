#pragma once

#include <sys/types.h>

#include <optional>

#include "rendezvous/socket.h"

namespace diapason::rendezvous {

// The user at the other end of a TCP connection on this host, as the kernel reports it
// (sock_diag(7)). nullopt if the other end is on another host, or the kernel does not say. Takes a
// few microseconds; never waits for the peer. Thread-safe.
std::optional<uid_t> PeerUser(const Socket& socket);

}  // namespace diapason::rendezvous
