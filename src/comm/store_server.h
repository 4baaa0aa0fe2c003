#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "comm/frame.h"
#include "comm/socket.h"

namespace diapason::comm {

// The store itself, a thread on rank 0 that every rank is connected to as long as its group lives.
// It keeps the values, sees who ends, and tells the others. Strangers that connect are sent away
// without disturbing anybody.
class StoreServer {
 public:
  // `token` tells jobs apart that meet on one port.
  StoreServer(Socket listener, int size, std::string token);
  // Tells the ranks that the store closes in good order.
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

 private:
  struct Connection {
    Socket socket;
    int rank = -1;  // -1: has not said hello
    std::string in;
    std::string out;
    bool closing = false;  // close once everything is sent
    Deadline opened;
    // The request that waits, if any.
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
  };

  void Serve();
  void Accept();
  void Receive(Connection* connection);
  void Flush(Connection* connection);
  void Handle(Connection* connection, FrameKind kind, const std::string& body);
  void Hello(Connection* connection, const std::string& body);
  // Answers a waiting request if it can be answered now.
  void TryAnswer(Connection* connection, bool at_deadline);
  bool Collected(Connection* connection, bool at_deadline);
  void AnswerAll();
  void Drop(Connection* connection);
  void Refuse(Connection* connection, const std::string& why);
  void Tell(const std::string& frame);
  std::string Who(int rank) const;

  Socket listener_;
  Socket wake_read_;
  Socket wake_write_;
  const int size_;
  const std::string token_;
  std::map<int, std::unique_ptr<Connection>> connections_;  // by descriptor
  std::vector<Rank> ranks_;
  std::map<std::string, std::string, std::less<>> values_;
  // Set by a rank that cannot belong: nobody gets past the bootstrap then.
  std::string fatal_;
  int arrived_ = 0;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace diapason::comm
