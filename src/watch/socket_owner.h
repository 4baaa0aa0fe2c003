#pragma once

#include <sys/types.h>

#include <vector>

#include "base/root_fs.h"

namespace diapason::watch {

struct SocketOwner {
  pid_t pid = 0;          // the one of the candidates that holds the socket; 0 for none
  bool readable = false;  // the descriptors of all candidates that are alive could be read
};

// Which of the candidates holds the other end of a TCP connection on this host. Needs the
// permission to read their /proc/PID/fd.
SocketOwner OwnerOfPeer(const RootFs& tree, int fd, const std::vector<pid_t>& candidates);

}  // namespace diapason::watch
