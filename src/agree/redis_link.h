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
// The password is the first line of its file, where it has one: a file of this user's that no other
// may read.
Status ReadPasswordFile(RedisAddress* address);

// An answer of the server, copied out.
struct RedisReply {
  enum class Kind { kNothing, kText, kNumber, kList, kError } kind = Kind::kNothing;
  std::string text;
  long long number = 0;
  std::vector<RedisReply> list;
};

// A connection to one server. Not for several threads at once.
class RedisLink {
 public:
  explicit RedisLink(RedisAddress address);
  ~RedisLink();
  RedisLink(const RedisLink&) = delete;
  RedisLink& operator=(const RedisLink&) = delete;

  // Finds out where the host is. The only step whose time the system bounds, and not we; so it is
  // taken once, when nobody is in a hurry.
  Status Resolve();
  // Connects, authenticates and selects the database. An open connection is closed first.
  Status Connect(Deadline deadline);
  bool connected() const { return reader_ != nullptr; }

  // An answer of the server, which may be an error of its own. A failed Status: the connection is
  // lost, and closed.
  Result<RedisReply> Ask(const std::vector<std::string_view>& words, Deadline deadline);
  // The same, and an error of the server's is a failed Status too, see Refused(); the connection
  // stays.
  Result<RedisReply> Command(const std::vector<std::string_view>& words, Deadline deadline);
  // An error of the server's in words: kIo where it passes (the server loads its data, is busy or
  // full, part of a cluster is away), else kUnavailable.
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
  std::vector<std::string> addresses_;  // numeric; the one that worked last is the first
  // The socket is ours, and hiredis only reads answers: its own connections crash the process where
  // there is no memory.
  Descriptor socket_;
  redisReader* reader_ = nullptr;
};

}  // namespace diapason::agree
