#pragma once

#include <memory>
#include <string>

#include "base/descriptor.h"
#include "base/status.h"
#include "base/temporary_file.h"
#include "rendezvous/socket.h"

namespace diapason::cell_server {

struct ServedStoreOptions {
  // Where clients find it: listens on all addresses of this host if it is one of them, and on the
  // loopback alone if it is a loopback address. "": a name or an address of this host.
  std::string host;
  int port = 0;  // 0: a free one
  std::string secret;
};

// A store at tcp:// that this process serves, as long as the object lives: a server in a process of
// its own, and a second process that starts it again on the same file and the same port if it dies.
// Both end when this process ends, however it does; neither is its child, so that waiting for
// children is not disturbed. They write what they refuse to standard error.
//
// The file is in a temporary folder of this host, and is removed with the object.
class ServedStore {
 public:
  // kUnavailable: `host` is no address of this host, or the port is in use. REQUIRES: a process
  // with one thread.
  static Result<std::unique_ptr<ServedStore>> Start(const ServedStoreOptions& options);
  // Ends both processes, and waits until they have (at most 5 s).
  ~ServedStore();
  ServedStore(const ServedStore&) = delete;
  ServedStore& operator=(const ServedStore&) = delete;

  // "tcp://host:port"
  const std::string& url() const { return url_; }

 private:
  ServedStore() = default;

  std::string url_;
  TemporaryFolder folder_;
  Descriptor lifeline_;  // its end tells the processes to end
  Descriptor ended_;     // its end tells that they have
};

// Whether `host` names this host: one of its addresses can be listened on.
bool IsThisHost(const std::string& host);

// Listens where ServedStoreOptions::host says; `port` 0 becomes the chosen one.
Result<rendezvous::Socket> ListenForStore(const std::string& host, int* port);

// The name under which other hosts find this one: its host name if it can be resolved here, else an
// address of one of its interfaces, else "localhost".
std::string HostForOthers();

// Allows as many descriptors as the system does: every rank has two connections.
void RaiseDescriptorLimit();

}  // namespace diapason::cell_server
