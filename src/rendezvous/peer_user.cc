#include "rendezvous/peer_user.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstring>

namespace diapason::rendezvous {
namespace {

struct SocketQuery {
  nlmsghdr header;
  inet_diag_req_v2 request;
};

// Fills in one end. False for families other than IPv4 and IPv6.
bool TakeEnd(const sockaddr_storage& address, __be16* port, __be32* bytes) {
  if (address.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address);
    *port = four.sin_port;
    std::memcpy(bytes, &four.sin_addr, sizeof(four.sin_addr));
    return true;
  }
  if (address.ss_family == AF_INET6) {
    const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
    *port = six.sin6_port;
    std::memcpy(bytes, &six.sin6_addr, sizeof(six.sin6_addr));
    return true;
  }
  return false;
}

// Queries the peer's own socket: source and destination are swapped.
bool Ask(const Socket& socket, SocketQuery* question) {
  sockaddr_storage here{};
  sockaddr_storage there{};
  socklen_t here_size = sizeof(here);
  socklen_t there_size = sizeof(there);
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&here), &here_size) != 0) return false;
  if (getpeername(socket.get(), reinterpret_cast<sockaddr*>(&there), &there_size) != 0)
    return false;
  question->header.nlmsg_len = sizeof(*question);
  question->header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question->header.nlmsg_flags = NLM_F_REQUEST;
  inet_diag_req_v2& request = question->request;
  request.sdiag_family = static_cast<__u8>(there.ss_family);
  request.sdiag_protocol = IPPROTO_TCP;
  request.idiag_states = ~0U;
  inet_diag_sockid& id = request.id;
  id.idiag_cookie[0] = id.idiag_cookie[1] = static_cast<__u32>(INET_DIAG_NOCOOKIE);
  return TakeEnd(there, &id.idiag_sport, id.idiag_src) &&
         TakeEnd(here, &id.idiag_dport, id.idiag_dst);
}

}  // namespace

std::optional<uid_t> PeerUser(const Socket& socket) {
  SocketQuery question{};
  if (!Ask(socket, &question)) return {};
  const Socket kernel(
      ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
  if (!kernel.open()) return {};
  if (::send(kernel.get(), &question, sizeof(question), 0) != sizeof(question)) return {};
  // The kernel replies to a query about one socket synchronously.
  alignas(nlmsghdr) char answer[4096];
  const ssize_t size = ::recv(kernel.get(), answer, sizeof(answer), 0);
  if (size < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(inet_diag_msg)))) return {};
  nlmsghdr header;
  inet_diag_msg message;
  std::memcpy(&header, answer, sizeof(header));
  std::memcpy(&message, answer + NLMSG_HDRLEN, sizeof(message));
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY) return {};
  // Not a listener that happens to have the same port as a peer on another host.
  if (message.idiag_state != TCP_ESTABLISHED) return {};
  return message.idiag_uid;
}

}  // namespace diapason::rendezvous
