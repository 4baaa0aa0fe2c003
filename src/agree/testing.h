#pragma once

// Helpers shared by the tests and benchmarks of this component; not part of the plugin.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agree/redis_link.h"
#include "base/temporary_file.h"
#include "base/text.h"

namespace diapason::agree {

// A private redis-server on a free port of this host; ended by the destructor.
class RedisServer {
 public:
  // Null: the program is not installed, or does not start.
  static std::unique_ptr<RedisServer> Start(std::vector<std::string> options = {}) {
    for (int attempt = 0; attempt < 5; ++attempt) {
      std::unique_ptr<RedisServer> server(new RedisServer(options));
      if (server->Launch()) return server;
    }
    return nullptr;
  }
  ~RedisServer() { Kill(); }
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  int port() const { return port_; }
  pid_t pid() const { return pid_; }
  std::string Url(const std::string& who = "", const std::string& rest = "") const {
    return "redis://" + who + Format("127.0.0.1:{}", port_) + rest;
  }

  void Kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  // Suspends it; it does not answer until it continues.
  void Stop() const { ::kill(pid_, SIGSTOP); }
  void GoOn() const { ::kill(pid_, SIGCONT); }
  // On the same port and with the same folder, and so with the last snapshot.
  bool Restart() {
    Kill();
    return Launch();
  }
  // Ends it as an administrator would, and starts it again with other options.
  bool Restart(std::vector<std::string> options) {
    options_ = std::move(options);
    return Restart();
  }
  // Takes over the port of another one, which has ended.
  bool TakePort(RedisServer* other) {
    other->Kill();
    if (!Command({"CONFIG", "SET", "port", Format("{}", other->port_)})) return false;
    port_ = other->port_;
    return true;
  }
  // Lets tests act as an administrator.
  bool Command(const std::vector<std::string_view>& words) { return Answer(words).ok(); }
  Result<RedisReply> Answer(const std::vector<std::string_view>& words) {
    RedisAddress address;
    address.host = "127.0.0.1";
    address.port = port_;
    RedisLink link(address);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    if (Status found = link.Resolve(); !found.ok()) return found;
    if (Status connected = link.Connect(deadline); !connected.ok()) return connected;
    return link.Command(words, deadline);
  }

 private:
  explicit RedisServer(std::vector<std::string> options)
      : options_(std::move(options)), port_(FreePort()) {}

  static int FreePort() {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    int port = 0;
    if (::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
      port = ntohs(address.sin_port);
    }
    ::close(fd);
    return port;
  }

  bool Launch() {
    std::vector<std::string> words = {"redis-server",
                                      "--port",
                                      Format("{}", port_),
                                      "--bind",
                                      "127.0.0.1",
                                      "--save",
                                      "",
                                      "--appendonly",
                                      "no",
                                      "--dir",
                                      folder_.path(),
                                      "--repl-diskless-sync-delay",
                                      "0"};
    words.insert(words.end(), options_.begin(), options_.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int null = ::open("/dev/null", O_RDWR);
      for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
      ::execvp(arguments[0], arguments.data());
      ::_exit(127);
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (std::chrono::steady_clock::now() < deadline) {
      if (::waitpid(pid_, nullptr, WNOHANG) != 0) {
        pid_ = -1;
        return false;
      }
      if (Answers()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    Kill();
    return false;
  }

  // Whether it answers at all; with a password set, it replies that it needs one.
  bool Answers() {
    RedisAddress address;
    address.host = "127.0.0.1";
    address.port = port_;
    RedisLink link(address);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    if (!link.Resolve().ok() || !link.Connect(deadline).ok()) return false;
    const Result<RedisReply> reply = link.Ask({"PING"}, deadline);
    return reply.ok() && reply.value().text.compare(0, 7, "LOADING") != 0;
  }

  TemporaryFolder folder_;
  std::vector<std::string> options_;
  int port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace diapason::agree
