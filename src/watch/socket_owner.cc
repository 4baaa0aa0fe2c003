#include "watch/socket_owner.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "base/text.h"

namespace diapason::watch {
namespace {

constexpr size_t kMostTable = size_t{64} << 20;
constexpr size_t kMostFiles = 65536;

// An address as /proc/net/tcp and tcp6 write it: words in host order, then the port.
std::string ProcAddress(const sockaddr_storage& address) {
  std::string text;
  if (address.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address);
    return Format("{:08X}:{:04X}", four.sin_addr.s_addr, ntohs(four.sin_port));
  }
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
  for (int i = 0; i < 4; ++i) {
    uint32_t word = 0;
    std::memcpy(&word, six.sin6_addr.s6_addr + 4 * i, sizeof word);
    text += Format("{:08X}", word);
  }
  return text + Format(":{:04X}", ntohs(six.sin6_port));
}

// The inode of the socket whose addresses are those of `fd`, the other way round; "" for none.
std::string InodeOfPeer(const RootFs& tree, int fd) {
  sockaddr_storage own{};
  sockaddr_storage peer{};
  socklen_t own_size = sizeof own;
  socklen_t peer_size = sizeof peer;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size) != 0 ||
      getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) {
    return "";
  }
  const bool six = own.ss_family == AF_INET6;
  const auto table = tree.Read(six ? "/proc/self/net/tcp6" : "/proc/self/net/tcp", kMostTable);
  if (!table) return "";
  // "  12: LOCAL REMOTE ST TX:RX TR:WHEN RETRANSMITS UID TIMEOUT INODE ..."
  const std::string ends = " " + ProcAddress(peer) + " " + ProcAddress(own) + " ";
  const size_t at = table->find(ends);
  if (at == std::string::npos) return "";
  const size_t start = at + ends.size();
  size_t column = 0;
  for (const std::string_view word :
       Split(std::string_view(*table).substr(start, table->find('\n', start) - start), ' ')) {
    if (word.empty()) continue;
    if (column++ == 6) return std::string(word);
  }
  return "";
}

// 1: the process holds the socket; 0: it does not, or has ended; -1: it may not be read.
int Holds(const RootFs& tree, pid_t pid, const std::string& target) {
  const std::string folder = Format("/proc/{}/fd", static_cast<int>(pid));
  DIR* list = opendir(tree.Place(folder).c_str());
  if (list == nullptr) return tree.Exists(Format("/proc/{}", static_cast<int>(pid))) ? -1 : 0;
  int holds = 0;
  size_t files = 0;
  while (const dirent* entry = readdir(list)) {
    if (entry->d_name[0] == '.' || ++files > kMostFiles) continue;
    if (tree.Link(folder + "/" + entry->d_name).value_or("") == target) {
      holds = 1;
      break;
    }
  }
  closedir(list);
  return holds;
}

}  // namespace

SocketOwner OwnerOfPeer(const RootFs& tree, int fd, const std::vector<pid_t>& candidates) {
  SocketOwner owner;
  const std::string inode = InodeOfPeer(tree, fd);
  if (inode.empty() || inode == "0") return owner;
  const std::string target = "socket:[" + inode + "]";
  owner.readable = true;
  for (const pid_t pid : candidates) {
    const int holds = Holds(tree, pid, target);
    if (holds < 0) owner.readable = false;
    if (holds == 1) {
      owner.pid = pid;
      break;
    }
  }
  return owner;
}

}  // namespace diapason::watch
