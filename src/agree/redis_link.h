#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agree/private_folder.h"
#include "agree/store.h"
#include "base/status.h"

struct redisReader;

namespace diapason::agree {

// redis://[user][:password@]host[:port][/database][?password-file=/a/file]
struct RedisAddress {
  std::string user;
  std::string password;
  std::string password_file;
  bool authenticate = false;
  std::string host;
  int port = 6379;
  int database = 0;
};
// Messages never show the password.
Result<RedisAddress> ParseRedisAddress(const std::string& url);
// Reads the password from the first line of its file, if one is given. The file must belong to this
// user and be unreadable for others.
Status ReadPasswordFile(RedisAddress* address);

// A reply of the server, copied.
struct RedisReply {
  enum class Kind { kNothing, kText, kNumber, kList, kError } kind = Kind::kNothing;
  std::string text;
  long long number = 0;
  std::vector<RedisReply> list;
};

// A connection to one server. Not thread-safe.
class RedisLink {
 public:
  explicit RedisLink(RedisAddress address);
  ~RedisLink();
  RedisLink(const RedisLink&) = delete;
  RedisLink& operator=(const RedisLink&) = delete;

  // Resolves the host name. Only the system bounds the time of this step, so it is done once, when
  // the store is opened.
  Status Resolve();
  // Connects, authenticates and selects the database. Closes an open connection first.
  Status Connect(Deadline deadline);
  bool connected() const { return reader_ != nullptr; }

  // The reply of the server, which may be an error reply. A failed Status: the connection is lost,
  // and closed.
  Result<RedisReply> Ask(const std::vector<std::string_view>& words, Deadline deadline);
  // The same, but an error reply is a failed Status too, see Refused(); the connection stays open.
  Result<RedisReply> Command(const std::vector<std::string_view>& words, Deadline deadline);
  // The Status for an error reply: kIo if it is temporary (the server loads its data, is busy or
  // full, part of a cluster is down), else kUnavailable.
  Status Refused(std::string_view what, const std::string& answer) const;

  void Close();
  // "host:port", for messages.
  const std::string& name() const { return name_; }

 private:
  Status ConnectTo(const std::string& address, Deadline deadline);
  Status OpenSocket(const std::string& address, Deadline deadline);
  Status WaitFor(short events, Deadline deadline);
  Status Send(const std::string& request, Deadline deadline);
  Status Receive(Deadline deadline);
  Status Lost(const std::string& why);

  const RedisAddress address_;
  std::string name_;
  std::vector<std::string> addresses_;  // numeric; the one that worked last comes first
  // The socket is owned here, and hiredis only parses replies: its own connections crash the
  // process when memory runs out.
  Descriptor socket_;
  redisReader* reader_ = nullptr;
};

}  // namespace diapason::agree
