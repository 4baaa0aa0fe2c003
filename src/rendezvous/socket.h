#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/status.h"

namespace diapason::rendezvous {

using Socket = Descriptor;

// Non-blocking TCP, IPv4 and IPv6; every wait has a deadline. Descriptors are close-on-exec.

// Listens on the port, on the first address of `address` that this host has; on all addresses if it
// has none of them: `address` is then one that leads here from outside (of a container, of a
// service). Fails with kUnavailable if the port is in use.
Result<Socket> ListenOn(const std::string& address, int port);
// The same on an address of `address` that this host has; else it fails. Port 0: a free one.
Result<Socket> ListenOnExactly(const std::string& address, int port);
int LocalPort(const Socket& socket);
// One attempt; kUnavailable if no process listens there (yet).
Result<Socket> ConnectTo(const std::string& address, int port, Deadline deadline);
// The numeric addresses of a host, which ConnectTo takes without asking a name service. Only the
// system bounds the time of this step.
Result<std::vector<std::string>> NumericAddresses(const std::string& host);
// What both ends of a connection need: no delay of small messages, and a peer that disappears
// silently is noticed within about half a minute.
void SetStreamOptions(const Socket& socket);
Status SendAll(const Socket& socket, const std::string& bytes, Deadline deadline);
// Waits for data and appends it to `buffer`; kPeerLost at the end of the stream.
Status ReceiveSome(const Socket& socket, std::string* buffer, Deadline deadline);
// The numeric address of the local end of a connection.
std::string LocalAddress(const Socket& socket);
// And of the peer; "?" if it is gone.
std::string PeerAddress(const Socket& socket);

}  // namespace diapason::rendezvous
