#include "watch/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

namespace diapason::watch {
namespace {

constexpr size_t kMostClients = 8;
constexpr size_t kMostRequest = 4096;
constexpr double kClientSeconds = 2;

struct ListenAddress {
  std::string address = "127.0.0.1";
  uint64_t port = 0;
};

bool ParsePlace(std::string_view text, ListenAddress* place) {
  const size_t colon = text.rfind(':');
  if (colon != std::string_view::npos) {
    std::string_view address = text.substr(0, colon);
    if (address.size() > 2 && address.front() == '[' && address.back() == ']') {
      address = address.substr(1, address.size() - 2);
    }
    place->address = address == "localhost" ? "127.0.0.1" : std::string(address);
    text.remove_prefix(colon + 1);
  }
  return ParseUnsigned(text, &place->port) && place->port <= 65535;
}

std::string Answer(const char* status, std::string_view type, std::string_view body, bool head) {
  std::string text =
      Format("HTTP/1.1 {}\r\nContent-Length: {}\r\nConnection: close\r\n", status, body.size());
  text += "Content-Type: " + std::string(type) + "\r\n\r\n";
  if (!head) text += body;
  return text;
}

std::string Plain(const char* status, const char* body) {
  return Answer(status, "text/plain; charset=utf-8", body, false);
}

// `request` up to the end of its first line.
std::string AnswerTo(std::string_view line, const std::string& content) {
  const std::vector<std::string_view> words = Split(line, ' ');
  if (words.size() != 3 || !words[2].starts_with("HTTP/1.")) {
    return Plain("400 Bad Request", "this is no HTTP request\n");
  }
  const bool head = words[0] == "HEAD";
  if (!head && words[0] != "GET") {
    return Plain("405 Method Not Allowed", "only GET and HEAD\n");
  }
  const std::string_view path = words[1].substr(0, words[1].find('?'));
  if (path == "/metrics") {
    return Answer("200 OK", "text/plain; version=0.0.4; charset=utf-8", content, head);
  }
  return Plain("404 Not Found", "there is /metrics, and nothing else\n");
}

}  // namespace

bool MetricsServer::IsPlace(std::string_view text) {
  ListenAddress place;
  return text.find('/') == std::string_view::npos && ParsePlace(text, &place);
}

Status MetricsServer::CheckPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  const std::string_view port = colon == std::string_view::npos ? text : text.substr(colon + 1);
  if (port.empty() || port.find_first_not_of("0123456789") != std::string_view::npos) return {};
  // An address or nothing precedes the port; otherwise it is a file name.
  const std::string_view address = text.substr(0, text.size() - port.size());
  const bool numbers = address.find_first_not_of("0123456789abcdef.:[]") == std::string_view::npos;
  if ((!numbers && address != "localhost:") || IsPlace(text)) return {};
  return Invalid("'" + std::string(text) + "': a port is a number from 1 to 65535; for a file of " +
                 "that name write './" + std::string(text) + "'");
}

Result<std::unique_ptr<MetricsServer>> MetricsServer::Listen(const std::string& text) {
  ListenAddress place;
  if (!ParsePlace(text, &place)) return Invalid("'" + text + "' is no port and no ADDRESS:PORT");
  sockaddr_storage storage{};
  socklen_t size = 0;
  auto* four = reinterpret_cast<sockaddr_in*>(&storage);
  auto* six = reinterpret_cast<sockaddr_in6*>(&storage);
  if (inet_pton(AF_INET, place.address.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(static_cast<uint16_t>(place.port));
    size = sizeof *four;
  } else if (inet_pton(AF_INET6, place.address.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(static_cast<uint16_t>(place.port));
    size = sizeof *six;
  } else {
    return Invalid("'" + place.address + "' is no address; write it in numbers, as 0.0.0.0");
  }
  std::unique_ptr<MetricsServer> server(new MetricsServer());
  server->fd_ =
      Descriptor(socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int fd = server->fd_.get();
  const int on = 1;
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(fd, reinterpret_cast<sockaddr*>(&storage), size) != 0 ||
      listen(fd, 2 * kMostClients) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) {
    return IoError(Format("cannot serve metrics at {} port {}: {}", place.address,
                          static_cast<int>(place.port), ErrnoText(errno)));
  }
  const bool is_six = storage.ss_family == AF_INET6;
  server->port_ = ntohs(is_six ? six->sin6_port : four->sin_port);
  server->url_ = Format("http://{}:{}/metrics", is_six ? "[" + place.address + "]" : place.address,
                        server->port_);
  return server;
}

void MetricsServer::Accept() {
  while (clients_.size() < kMostClients) {
    Client client;
    client.fd = Descriptor(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client.fd.open()) return;
    client.deadline_s = SteadySeconds() + kClientSeconds;
    clients_.push_back(std::move(client));
  }
}

bool MetricsServer::Talk(Client* client, short events, const std::string& content) {
  if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) {
    char block[2048];
    const ssize_t got = recv(client->fd.get(), block, sizeof block, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (got > 0 && client->out.empty()) {
      client->in.append(block, static_cast<size_t>(got));
      const size_t line = client->in.find("\r\n");
      if (client->in.find("\r\n\r\n") != std::string::npos) {
        client->out = AnswerTo(std::string_view(client->in).substr(0, line), content);
      } else if (client->in.size() > kMostRequest) {
        client->out = Plain("431 Request Header Fields Too Large", "the request is too long\n");
      }
    }
  }
  while (client->sent < client->out.size()) {
    const ssize_t sent = send(client->fd.get(), client->out.data() + client->sent,
                              client->out.size() - client->sent, MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    client->sent += static_cast<size_t>(sent);
  }
  if (!client->out.empty() && !client->closing) {
    // Closing at once could lose the response if the client has sent more than was read.
    client->closing = true;
    shutdown(client->fd.get(), SHUT_WR);
  }
  return true;
}

void MetricsServer::ServeUntil(double deadline_s, const std::string& content,
                               const sigset_t* mask) {
  while (true) {
    const double now = SteadySeconds();
    double until = deadline_s;
    std::erase_if(clients_, [&](const Client& client) { return now >= client.deadline_s; });
    std::vector<pollfd> polled;
    // With all slots in use new connections wait in the queue, for two seconds at most.
    if (clients_.size() < kMostClients) polled.push_back({fd_.get(), POLLIN, 0});
    const size_t first = polled.size();
    for (const Client& client : clients_) {
      const bool writes = client.sent < client.out.size();
      polled.push_back(
          {client.fd.get(), static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0});
      until = std::min(until, client.deadline_s);
    }
    const double left = std::max(0.0, until - now);
    const timespec limit{static_cast<time_t>(left),
                         static_cast<long>((left - std::floor(left)) * 1e9)};
    const int ready = ppoll(polled.data(), polled.size(), &limit, mask);
    if (ready < 0) return;
    if (ready == 0 && SteadySeconds() >= deadline_s) return;
    for (size_t i = polled.size(); i-- > first;) {
      if (polled[i].revents == 0) continue;
      Client& client = clients_[i - first];
      if (Talk(&client, polled[i].revents, content)) continue;
      clients_.erase(clients_.begin() + static_cast<ptrdiff_t>(i - first));
    }
    if (first == 1 && polled[0].revents != 0) Accept();
    if (SteadySeconds() >= deadline_s) return;
  }
}

}  // namespace diapason::watch
