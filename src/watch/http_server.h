#pragma once

#include <signal.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/status.h"

namespace diapason::watch {

// Serves one text at GET /metrics, and nothing else, on the calling thread. Eight concurrent
// connections, each at most two seconds and a request of 4 KiB; slower or larger ones are closed.
class MetricsServer {
 public:
  // `place`: "9400", "127.0.0.1:9400", "[::1]:9400"; without an address this host only. Port 0: any
  // free port.
  static Result<std::unique_ptr<MetricsServer>> Listen(const std::string& place);
  // Whether a text is such a place rather than a file name.
  static bool IsPlace(std::string_view text);
  // Fails for such a place with an invalid port: more than 65535.
  static Status CheckPort(std::string_view text);
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // Serves until `deadline_s` (SteadySeconds) or a signal that `mask` permits.
  void ServeUntil(double deadline_s, const std::string& content, const sigset_t* mask);

  const std::string& url() const { return url_; }
  int port() const { return port_; }

 private:
  struct Client {
    Descriptor fd;
    double deadline_s = 0;
    std::string in;
    std::string out;
    size_t sent = 0;
    bool closing = false;  // everything is sent; further input is read and discarded
  };

  MetricsServer() = default;
  void Accept();
  // False: the connection is finished.
  static bool Talk(Client* client, short events, const std::string& content);

  Descriptor fd_;
  int port_ = 0;
  std::string url_;
  std::vector<Client> clients_;
};

}  // namespace diapason::watch
