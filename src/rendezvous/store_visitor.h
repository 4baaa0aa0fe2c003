#pragma once

#include <unistd.h>

#include <chrono>
#include <string>

#include "base/version.h"
#include "rendezvous/handshake.h"
#include "rendezvous/socket.h"
#include "rendezvous/tcp_store.h"

// For tests: a process that talks to a store without being one of its ranks.
namespace diapason::rendezvous {

inline Deadline TestLimit() { return std::chrono::steady_clock::now() + std::chrono::seconds(120); }

// A port that is free now.
inline int PortForTest() {
  static int next = 21000 + static_cast<int>(getpid() % 1000);
  for (next += 7; next < 29000; next += 7) {
    if (ListenOn("localhost", next).ok()) return next;
  }
  return 0;
}

inline Hello HelloForTest(int rank, int size) {
  Hello hello;
  hello.version = kVersion;
  hello.rank = static_cast<uint64_t>(rank);
  hello.size = static_cast<uint64_t>(size);
  hello.host = "elsewhere";
  hello.process = 99;
  hello.nonce = DrawNonce().value();
  return hello;
}

class Visitor {
 public:
  // Connects as soon as there is a listener.
  explicit Visitor(int port) {
    Result<Socket> socket = Unavailable("not connected");
    while (!socket.ok() && std::chrono::steady_clock::now() < limit_) {
      socket = ConnectTo("localhost", port, limit_);
    }
    if (socket.ok()) socket_ = std::move(socket).value();
  }

  // False: the store has closed the connection.
  bool Say(const std::string& bytes) { return SendAll(socket_, bytes, limit_).ok(); }
  // The next frame of the store; false if it closes the connection first.
  bool Listen(FrameKind* kind, std::string* body) {
    bool damaged = false;
    for (;;) {
      if (!greeted_ && in_.rest().size() >= kFrameMagic.size()) {
        in_.Skip(kFrameMagic.size());
        greeted_ = true;
      }
      if (greeted_ && in_.Take(kAnswerLimit, kind, body, &damaged)) return true;
      if (damaged || !ReceiveSome(socket_, in_.Tail(), limit_).ok()) return false;
    }
  }
  // The values that both ends share in this connection.
  HandshakeInputs Challenge(const std::string& secret, const std::string& address) {
    HandshakeInputs shared{secret, address, ""};
    FrameKind kind{};
    std::string body;
    bool wants_proof = false;
    if (Listen(&kind, &body)) {
      const Status read = ReadChallenge(body, &shared.nonce, &wants_proof);
      static_cast<void>(read);  // without a nonce no proof is valid
    }
    return shared;
  }
  // Waits until the store closes the connection; false if it does not.
  bool IsTurnedAway() {
    std::string rest;
    Status got;
    while (got.ok()) got = ReceiveSome(socket_, &rest, limit_);
    return got.code() == ErrorCode::kPeerLost;
  }
  // Whether it is still open now.
  bool IsOpen() {
    Status got;
    while (got.ok()) got = ReceiveSome(socket_, in_.Tail(), std::chrono::steady_clock::now());
    return got.code() == ErrorCode::kTimeout;
  }
  void Leave() { socket_.Close(); }

 private:
  const Deadline limit_ = TestLimit();
  Socket socket_;
  FrameBuffer in_;
  bool greeted_ = false;
};

// A store of its own; the test plays ranks 1 and up.
class StoreForTest {
 public:
  explicit StoreForTest(StoreServerOptions options) {
    address.port = PortForTest();
    address.secret = options.secret;
    options.address = StoreName(address.host, address.port);
    size = options.size;
    server = std::make_unique<StoreServer>(ListenOn(address.host, address.port).value(),
                                           std::move(options));
  }
  std::string Name() const { return StoreName(address.host, address.port); }
  Result<std::unique_ptr<TcpStore>> Join(int rank) const {
    return TcpStore::Join(address, rank, size, TestLimit());
  }

  StoreAddress address;
  int size = 0;
  std::unique_ptr<StoreServer> server;
};

}  // namespace diapason::rendezvous
