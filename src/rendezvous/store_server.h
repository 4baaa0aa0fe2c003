#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "rendezvous/frame.h"
#include "rendezvous/handshake.h"
#include "rendezvous/socket.h"
#include "rendezvous/turned_away.h"

namespace diapason::rendezvous {

struct StoreServerOptions {
  int size = 1;
  std::string token;  // tells jobs apart that meet on one port
  // Ranks must know it; "": any process may join, but for those of other users of this host, where
  // the kernel tells.
  std::string secret;
  std::string address;  // StoreName(), what the proofs are bound to
  // A connection that has not become a rank's is closed after this long, whatever it has sent.
  std::chrono::milliseconds hello_limit{5000};
  // So many of these at once beside one for every rank that has not come. One more, and the oldest
  // is closed: a rank, which says its hello at once, gets in between any number of silent ones.
  size_t strangers = 256;
  // Bytes that all values may hold together, beside 1 MiB for each rank.
  size_t stored = size_t{256} << 20U;
  std::function<void(const std::string&)> log;  // from the server's thread; may be empty
};

// The store itself, a thread on rank 0 that every rank is connected to as long as its group lives.
// It keeps the values, sees which ranks end, and tells the others. A connection that does not prove
// to be a rank's is turned away, and harms no other.
//
// Memory: a connection holds at most RequestLimit() of what it has sent (kStrangerLimit before it
// is a rank's), and one answer and 1 MiB of what it has not read; it is not read from while it does
// not read itself. StoreServerOptions::stored bounds the values.
class StoreServer {
 public:
  StoreServer(Socket listener, StoreServerOptions options);
  // Tells the ranks that the store closes in good order.
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  // Connections that said something wrong, or nothing in time. From any thread.
  uint64_t turned_away() const { return turned_away_.count(); }

 private:
  struct Connection {
    Socket socket;
    int rank = -1;  // -1: a stranger
    std::string nonce;
    bool greeted = false;  // its magic words have come
    FrameBuffer in;
    std::string out;
    size_t sent = 0;       // of `out`
    bool closing = false;  // close once everything is sent
    Deadline opened;
    // The request that waits, if any.
    FrameKind waits_for = FrameKind::kHello;  // kHello: nothing
    std::string key;
    std::vector<int> members;
    bool until_loss = false;
    size_t first_missing = 0;
    Deadline deadline;

    size_t pending() const { return out.size() - sent; }
    bool stranger() const { return rank < 0 && socket.open(); }
  };
  struct Rank {
    enum class State : uint8_t { kAbsent, kPresent, kLeft, kLost };
    State state = State::kAbsent;
    std::string host;
    uint64_t process = 0;
    std::string refused;  // why a process that said to be this rank was turned away
  };

  // store_server.cc: connections.
  void Serve();
  Deadline Prepare(std::vector<pollfd>* entries);
  void CheckDeadlines();
  void SayGoodbye();
  void Accept();
  void Welcome(Socket socket);
  bool DropOldestStranger();
  void Receive(Connection* connection);
  void TakeFrames(Connection* connection);
  bool TakeMagic(Connection* connection);
  void Flush(Connection* connection);
  void Send(Connection* connection, const std::string& frame);
  void Drop(Connection* connection);
  void TurnAway(Connection* connection, const std::string& why);

  // store_hello.cc: who may join.
  void Hear(Connection* connection, const std::string& body);
  // Why a process that has (or need not have) the secret cannot be a rank of this job; "" if it
  // can.
  std::string WhyNot(const Hello& hello) const;
  void Refuse(Connection* connection, const Hello& hello, const std::string& why);
  void Admit(Connection* connection, const Hello& hello);
  void Judge(Connection* connection, FrameKind kind, const std::string& text, const Hello& hello);
  std::string Who(int rank) const;

  // store_requests.cc: what ranks ask.
  void Handle(Connection* connection, FrameKind kind, const std::string& body);
  bool Keep(Connection* connection, const std::string& key, const std::string& value);
  void Wait(Connection* connection, FrameKind kind, uint64_t limit);
  // Answers a waiting request if it can be answered now.
  void TryAnswer(Connection* connection, bool at_deadline);
  std::string Collection(const Connection& connection) const;
  bool Collected(Connection* connection, bool at_deadline);
  void AnswerAll();
  void Fail(Connection* connection, const std::string& why);
  void Tell(const std::string& frame);

  Socket listener_;
  Socket wake_read_;
  Socket wake_write_;
  const StoreServerOptions options_;
  const int size_;
  std::map<int, std::unique_ptr<Connection>> connections_;  // by descriptor
  std::vector<Rank> ranks_;
  std::map<std::string, std::string, std::less<>> values_;
  size_t stored_ = 0;  // bytes of keys and values
  // Set by a rank that knows the secret and cannot belong: the job is started wrongly, and no rank
  // gets past the bootstrap then.
  std::string fatal_;
  int arrived_ = 0;
  Deadline accept_after_{};  // while there are no descriptors left
  TurnedAway turned_away_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace diapason::rendezvous
