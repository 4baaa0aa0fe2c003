#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "rendezvous/frame.h"
#include "rendezvous/frame_server.h"
#include "rendezvous/handshake.h"
#include "rendezvous/socket.h"

namespace diapason::rendezvous {

struct StoreServerOptions {
  int size = 1;
  std::string token;  // distinguishes jobs that use the same port
  // Ranks must know it; "": any process may join, except for those of other users of this host, if
  // the kernel reports the user.
  std::string secret;
  std::string address;  // StoreName(), to which the proofs are bound
  // A connection that has not authenticated as a rank after this time is closed, whatever it has
  // sent.
  std::chrono::milliseconds hello_limit{5000};
  // The limit on such connections, besides one for every missing rank. Beyond it the oldest is
  // closed: a rank, which sends its hello at once, can join despite any number of silent
  // connections.
  size_t unauthenticated = 256;
  // Limit on the bytes of all values together, besides 1 MiB for each rank.
  size_t stored = size_t{256} << 20U;
  std::function<void(const std::string&)> log;  // called on the server's thread; may be empty
};

// The store itself: a thread on rank 0 to which every rank is connected as long as its group lives.
// It keeps the values, detects ranks that end, and notifies the others. A connection that does not
// authenticate as a rank is closed, without effect on others.
//
// Memory: FrameServer bounds what connections buffer, StoreServerOptions::stored the values.
class StoreServer : public FrameServer {
 public:
  StoreServer(Socket listener, StoreServerOptions options);
  // Tells the ranks that the store closes normally.
  ~StoreServer() override;

 private:
  struct RankConnection : Connection {
    int rank = -1;  // -1: not authenticated
    // The waiting request, if any.
    FrameKind waits_for = FrameKind::kHello;  // kHello: nothing
    std::string key;
    std::vector<int> members;
    bool until_loss = false;
    size_t first_missing = 0;
    Deadline deadline;
  };
  struct Rank {
    enum class State : uint8_t { kAbsent, kPresent, kLeft, kLost };
    State state = State::kAbsent;
    std::string host;
    uint64_t process = 0;
    std::string refused;  // why a process that claimed to be this rank was refused
  };

  // store_server.cc: connections.
  std::unique_ptr<Connection> NewConnection() override;
  size_t MostUnauthenticated() const override;
  uint32_t MostRequest() const override { return RequestLimit(size_); }
  void Closed(Connection* connection) override;
  Deadline EndRound(Deadline now) override;
  void SayGoodbye();
  void ForEach(const std::function<void(RankConnection*)>& action);

  // store_hello.cc: new connections.
  void Hear(Connection* connection, const Hello& hello) override;
  // Why a process that knows the secret, or needs none, cannot be a rank of this job; "" if it can.
  std::string WhyNot(const Hello& hello) const;
  void Refuse(RankConnection* connection, const Hello& hello, const std::string& why);
  void Admit(RankConnection* connection, const Hello& hello);
  std::string Who(int rank) const;

  // store_requests.cc: requests of ranks.
  void Handle(Connection* connection, FrameKind kind, const std::string& body) override;
  bool Keep(RankConnection* connection, const std::string& key, const std::string& value);
  void Wait(RankConnection* connection, FrameKind kind, uint64_t limit);
  // Replies to a waiting request if that is possible now.
  void TryAnswer(RankConnection* connection, bool at_deadline);
  std::string Collection(const RankConnection& connection) const;
  bool Collected(RankConnection* connection, bool at_deadline);
  void AnswerAll();
  void Fail(RankConnection* connection, const std::string& why);
  void Tell(const std::string& frame);

  const StoreServerOptions options_;
  const int size_;
  std::vector<Rank> ranks_;
  std::map<std::string, std::string, std::less<>> values_;
  size_t stored_ = 0;  // bytes of keys and values
  // Set if a rank that knows the secret does not fit: the job was started wrongly, and no rank gets
  // past the bootstrap.
  std::string fatal_;
  int arrived_ = 0;
  int gone_ = 0;  // ranks that were lost or have left
  std::thread thread_;
};

}  // namespace diapason::rendezvous
