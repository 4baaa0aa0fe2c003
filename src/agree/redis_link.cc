#include "agree/redis_link.h"

#include <hiredis/hiredis.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "agree/host_port.h"
#include "agree/link_guard.h"
#include "base/file.h"
#include "base/text.h"

namespace diapason::agree {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kDeepestReply = 4;
constexpr int kMostAddresses = 8;

milliseconds Remaining(Deadline deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
  return std::max(left, milliseconds(0));
}

// A command in the Redis protocol: the number of words, and each with its length.
std::string Request(const std::vector<std::string_view>& words) {
  std::string text = Format("*{}\r\n", words.size());
  for (const std::string_view word : words) {
    text += Format("${}\r\n", word.size());
    text.append(word);
    text += "\r\n";
  }
  return text;
}

RedisReply Copy(const redisReply& reply, int depth) {
  RedisReply copy;
  switch (reply.type) {
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
      copy.kind = RedisReply::Kind::kText;
      copy.text.assign(reply.str, reply.len);
      break;
    case REDIS_REPLY_ERROR:
      copy.kind = RedisReply::Kind::kError;
      copy.text.assign(reply.str, reply.len);
      break;
    case REDIS_REPLY_INTEGER:
      copy.kind = RedisReply::Kind::kNumber;
      copy.number = reply.integer;
      break;
    case REDIS_REPLY_ARRAY:
      copy.kind = RedisReply::Kind::kList;
      for (size_t i = 0; depth > 0 && i < reply.elements; ++i) {
        copy.list.push_back(Copy(*reply.element[i], depth - 1));
      }
      break;
    default:
      break;
  }
  return copy;
}

// The first word of an error. Before 7.0, errors in scripts have it further on: "ERR Error running
// script (call to f_12ab): @user_script:1: -OOM command not allowed".
std::string_view CodeOf(std::string_view answer) {
  constexpr std::string_view kInScript = ": -";
  if (answer.starts_with("ERR Error running script")) {
    if (const size_t at = answer.find(kInScript); at != std::string_view::npos) {
      answer.remove_prefix(at + kInScript.size());
    }
  }
  return answer.substr(0, answer.find(' '));
}

// Temporary errors: the server has done nothing and may succeed later. READONLY and MASTERDOWN are
// not among them: they come from a replica.
bool Passes(std::string_view answer) {
  constexpr std::string_view kCodes[] = {"LOADING",  "BUSY",        "OOM",       "MISCONF",
                                         "TRYAGAIN", "CLUSTERDOWN", "NOREPLICAS"};
  const std::string_view code = CodeOf(answer);
  return std::find(std::begin(kCodes), std::end(kCodes), code) != std::end(kCodes) ||
         answer.starts_with("ERR max number of clients reached");
}

}  // namespace

RedisLink::RedisLink(RedisAddress address)
    : address_(std::move(address)), name_(HostPortText(address_.host, address_.port)) {}

RedisLink::~RedisLink() { Close(); }

void RedisLink::Close() {
  // Sends nothing to the server: in a forked child the connection still belongs to the parent.
  socket_ = Descriptor();
  if (reader_ != nullptr) redisReaderFree(reader_);
  reader_ = nullptr;
}

Status RedisLink::Lost(const std::string& why) {
  Close();
  return IoError(Format("the Redis server at {}: {}", name_, why));
}

Status RedisLink::Resolve() {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(address_.host.c_str(), Format("{}", address_.port).c_str(), &hints, &found);
  if (error != 0) {
    return IoError(Format("cannot find the Redis server's host '{}': {}", address_.host,
                          ::gai_strerror(error)));
  }
  // Also without memory for the copies.
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, &::freeaddrinfo);
  addresses_.clear();
  for (const addrinfo* at = found; at != nullptr && addresses_.size() < kMostAddresses;
       at = at->ai_next) {
    char numeric[NI_MAXHOST];
    if (::getnameinfo(at->ai_addr, at->ai_addrlen, numeric, sizeof(numeric), nullptr, 0,
                      NI_NUMERICHOST) == 0) {
      addresses_.emplace_back(numeric);
    }
  }
  return {};
}

Status RedisLink::ConnectTo(const std::string& address, Deadline deadline) {
  Close();
  // Without AUTH and SELECT it would be the connection of another user, to another database.
  LinkGuard guard(this);
  RETURN_IF_ERROR(OpenSocket(address, deadline));
  reader_ = redisReaderCreate();
  if (reader_ == nullptr) return Lost("no memory left");
  // Never shrink the buffer: hiredis aborts if it cannot allocate the smaller one.
  reader_->maxbuf = 0;
  if (address_.authenticate) {
    std::vector<std::string_view> words = {"AUTH"};
    if (!address_.user.empty()) words.emplace_back(address_.user);
    words.emplace_back(address_.password);
    ASSIGN_OR_RETURN(const RedisReply reply, Ask(words, deadline));
    // The server's text could repeat the password.
    if (reply.kind == RedisReply::Kind::kError) {
      if (Passes(reply.text)) {
        return IoError(Format("the Redis server at {} cannot be used right now", name_));
      }
      return Unavailable(Format("the Redis server at {}: it refused user or password", name_));
    }
  }
  if (address_.database != 0) {
    const std::string database = Format("{}", address_.database);
    RETURN_IF_ERROR(Command({"SELECT", database}, deadline).status());
  }
  guard.Keep();
  return {};
}

Status RedisLink::Connect(Deadline deadline) {
  Status last = Lost("its host has no address");
  for (size_t i = 0; i < addresses_.size(); ++i) {
    // Divides the time between the addresses, so that one that does not answer leaves some for the
    // others.
    const auto share = Remaining(deadline) / static_cast<int>(addresses_.size() - i);
    last = ConnectTo(addresses_[i], std::min(deadline, steady_clock::now() + share));
    if (last.ok()) {
      std::rotate(addresses_.begin(), addresses_.begin() + static_cast<ptrdiff_t>(i),
                  addresses_.begin() + static_cast<ptrdiff_t>(i) + 1);
      return last;
    }
  }
  return last;
}

Status RedisLink::OpenSocket(const std::string& address, Deadline deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(address.c_str(), Format("{}", address_.port).c_str(), &hints, &found);
  if (error != 0) return Lost(::gai_strerror(error));
  socket_ = Descriptor(
      ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  int result = -1;
  if (socket_.get() >= 0) result = ::connect(socket_.get(), found->ai_addr, found->ai_addrlen);
  const int failure = errno;
  ::freeaddrinfo(found);
  if (socket_.get() < 0 || (result != 0 && failure != EINPROGRESS)) return Lost(ErrnoText(failure));
  const int on = 1;  // a request is one message, and the caller waits for its reply
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (result == 0) return {};
  RETURN_IF_ERROR(WaitFor(POLLOUT, deadline));
  int refused = 0;
  socklen_t size = sizeof(refused);
  if (::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &refused, &size) != 0) refused = errno;
  return refused == 0 ? Status() : Lost(ErrnoText(refused));
}

Status RedisLink::WaitFor(short events, Deadline deadline) {
  while (true) {
    pollfd wait{socket_.get(), events, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(Remaining(deadline).count()));
    if (ready > 0) return {};
    if (ready == 0) return Lost("it did not answer in time");
    if (errno != EINTR) return Lost(ErrnoText(errno));
  }
}

Status RedisLink::Send(const std::string& request, Deadline deadline) {
  for (size_t sent = 0; sent < request.size();) {
    const ssize_t some =
        ::send(socket_.get(), request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
    if (some >= 0) {
      sent += static_cast<size_t>(some);
    } else if (errno == EAGAIN) {
      RETURN_IF_ERROR(WaitFor(POLLOUT, deadline));
    } else if (errno != EINTR) {
      return Lost(ErrnoText(errno));
    }
  }
  return {};
}

// Feeds received bytes to the reader.
Status RedisLink::Receive(Deadline deadline) {
  char bytes[16384];
  while (true) {
    const ssize_t some = ::recv(socket_.get(), bytes, sizeof(bytes), 0);
    if (some > 0) {
      if (redisReaderFeed(reader_, bytes, static_cast<size_t>(some)) == REDIS_OK) return {};
      return Lost(reader_->errstr);
    }
    if (some == 0) return Lost("it has closed the connection");
    if (errno == EAGAIN) {
      RETURN_IF_ERROR(WaitFor(POLLIN, deadline));
    } else if (errno != EINTR) {
      return Lost(ErrnoText(errno));
    }
  }
}

Result<RedisReply> RedisLink::Ask(const std::vector<std::string_view>& words, Deadline deadline) {
  if (reader_ == nullptr) return Lost("there is no connection");
  if (Remaining(deadline).count() == 0) return Lost("it did not answer in time");
  const std::string request = Request(words);
  // A late reply would be taken for that to the next request.
  LinkGuard guard(this);
  RETURN_IF_ERROR(Send(request, deadline));
  while (true) {
    void* raw = nullptr;
    if (redisReaderGetReply(reader_, &raw) != REDIS_OK) return Lost(reader_->errstr);
    const std::unique_ptr<void, void (*)(void*)> owner(raw, freeReplyObject);
    if (raw != nullptr) {
      guard.Keep();
      return Copy(*static_cast<redisReply*>(raw), kDeepestReply);
    }
    RETURN_IF_ERROR(Receive(deadline));
  }
}

Result<RedisReply> RedisLink::Command(const std::vector<std::string_view>& words,
                                      Deadline deadline) {
  Result<RedisReply> reply = Ask(words, deadline);
  if (!reply.ok() || reply.value().kind != RedisReply::Kind::kError) return reply;
  return Refused(words.front(), reply.value().text);
}

Status RedisLink::Refused(std::string_view what, const std::string& answer) const {
  std::string text =
      Format("the Redis server at {} refused {}: {}", name_, std::string(what), answer);
  return Passes(answer) ? IoError(std::move(text)) : Unavailable(std::move(text));
}

}  // namespace diapason::agree
