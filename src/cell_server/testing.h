#pragma once

// A server of a store in a process of its own, for tests and benchmarks.

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "agree/cell_protocol.h"
#include "base/temporary_file.h"
#include "base/text.h"
#include "cell_server/cell_server.h"
#include "rendezvous/socket.h"

namespace diapason::cell_server {

inline constexpr char kTestSecret[] = "a secret that only tests have";

// Listens on a free port of this host. The listener stays with the test, so that a server that is
// started again has the same port, and clients wait meanwhile.
class ServerProcess {
 public:
  explicit ServerProcess(bool with_file = true) {
    options_.secret = kTestSecret;
    if (with_file) options_.file = folder_.path() + "/cells";
    listener_ = Listen(&port_);
    Start();
  }
  ~ServerProcess() { Kill(); }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  static rendezvous::Socket Listen(int* port) {
    for (*port = 21000 + static_cast<int>(::getpid() % 5000); *port < 32000; ++*port) {
      Result<rendezvous::Socket> socket = rendezvous::ListenOn("127.0.0.1", *port);
      if (socket.ok()) return std::move(socket).value();
    }
    return {};
  }

  int port() const { return port_; }
  pid_t pid() const { return pid_; }
  const std::string& file() const { return options_.file; }
  CellServerOptions& options() { return options_; }  // for the next Start()
  std::string Url() const { return agree::TcpUrl({"127.0.0.1", port_}); }

  void Start() {
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto server = CellServer::Open(rendezvous::Socket(::dup(listener_.get())), options_);
    const bool fine = server.ok() && server.value()->Run().ok();
    ::_exit(fine ? 0 : 1);
  }
  void Kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  void Restart() {
    Kill();
    Start();
  }
  // Suspends it; it does not answer until it continues.
  void Stop() const { ::kill(pid_, SIGSTOP); }
  void GoOn() const { ::kill(pid_, SIGCONT); }
  // Waits until it ends by itself; its exit status, or -1.
  int End() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  TemporaryFolder folder_;
  CellServerOptions options_;
  int port_ = 0;
  rendezvous::Socket listener_;
  pid_t pid_ = -1;
};

}  // namespace diapason::cell_server
