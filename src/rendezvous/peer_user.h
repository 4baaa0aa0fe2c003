#pragma once

#include <sys/types.h>

#include <optional>

#include "rendezvous/socket.h"

namespace diapason::rendezvous {

// Which user of this host is at the other end of a TCP connection, as the kernel tells it
// (sock_diag(7)). Nothing where the other end is on another host, or the kernel does not say. Takes
// a few microseconds; waits for the kernel alone. Any thread.
std::optional<uid_t> PeerUser(const Socket& socket);

}  // namespace diapason::rendezvous
