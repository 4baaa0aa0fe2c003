#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "rendezvous/frame.h"
#include "rendezvous/handshake.h"
#include "rendezvous/socket.h"
#include "rendezvous/turned_away.h"

namespace diapason::rendezvous {

struct FrameServerOptions {
  std::string secret;   // "": peers prove nothing
  std::string address;  // to which the proofs are bound: HandshakeInputs::address
  // A connection that has not authenticated after this time is closed, whatever it has sent.
  std::chrono::milliseconds hello_limit{5000};
  // Limit on all connections. Beyond it the oldest unauthenticated one is closed, or the new one.
  size_t connections = size_t{1} << 17U;
  std::string who;  // the server, in log lines
  // Why a peer without a valid proof is refused.
  std::string unproven = "it does not know the secret";
  // Tells such a peer that it is refused for its secret, and no more, before the connection is
  // closed. Otherwise it is closed without a reply.
  bool tell_unproven = false;
  std::function<void(const std::string&)> log;  // called by the serving thread; may be empty
};

// A server for peers that authenticate with the handshake and then exchange frames. It has the
// connections; a derived class has the requests. One thread calls Serve() and with it every other
// function, except Stop() and turned_away().
//
// A peer that sends something else than frames, or nothing, is closed without effect on others.
// Memory: a connection buffers one request (MostRequest(), kUnauthenticatedLimit before it has
// authenticated) and 1 MiB of unread replies beyond the last one; it is not read from while it does
// not read itself.
class FrameServer {
 public:
  virtual ~FrameServer() = default;
  FrameServer(const FrameServer&) = delete;
  FrameServer& operator=(const FrameServer&) = delete;

  // Makes Serve() return. Thread-safe, and safe in a signal handler.
  void Stop();
  // Connections that sent invalid data, or nothing in time. Thread-safe.
  uint64_t turned_away() const { return turned_away_.count(); }

 protected:
  // A derived class adds what it keeps for each.
  struct Connection {
    virtual ~Connection() = default;
    Socket socket;
    std::string nonce;
    bool greeted = false;  // its magic has arrived
    bool authenticated = false;
    bool closing = false;  // close once everything is sent
    FrameBuffer in;
    std::string out;
    size_t sent = 0;  // of `out`
    std::optional<uint32_t>
        watched;  // events that epoll reports; nullopt: it is not known there yet
    Deadline opened;
    std::list<Connection*>::iterator place;  // in unauthenticated_, until it has authenticated

    size_t pending() const { return out.size() - sent; }
  };

  FrameServer(Socket listener, FrameServerOptions options);
  // Serves until Stop(); fails if the system provides no epoll or pipe.
  Status Serve();

  virtual std::unique_ptr<Connection> NewConnection() = 0;
  // Connections beyond this many that have not authenticated are closed, the oldest first.
  virtual size_t MostUnauthenticated() const = 0;
  virtual uint32_t MostRequest() const = 0;
  // A hello with a valid proof. Calls Judge().
  virtual void Hear(Connection* connection, const Hello& hello) = 0;
  virtual void Handle(Connection* connection, FrameKind kind, const std::string& body) = 0;
  // Whether its next frame may be handled now. TakeFrames() continues where this has stopped it.
  virtual bool Ready(const Connection& connection) const;
  // It was closed, by either side.
  virtual void Closed(Connection* /*connection*/) {}
  // Called after the events of a round, before new connections are accepted. Returns when to call
  // it again at the latest.
  virtual Deadline EndRound(Deadline now) = 0;

  // The reply to a hello; kFine authenticates the connection, all others close it.
  void Judge(Connection* connection, FrameKind kind, const std::string& text, const Hello& hello);
  void Send(Connection* connection, const std::string& frame);
  void TakeFrames(Connection* connection);
  // Handles no further frame of it, and closes it once everything is sent.
  void CloseWhenSent(Connection* connection);
  void Drop(Connection* connection);
  void TurnAway(Connection* connection, const std::string& why);
  void NoteTurnedAway(const Connection& connection, const std::string& why);
  size_t unauthenticated() const { return unauthenticated_.size(); }
  // All of them, also those that were closed in this round.
  const std::unordered_map<int, std::unique_ptr<Connection>>& connections() const {
    return connections_;
  }

 private:
  Status Prepare();
  void HandleEvent(int fd, uint32_t events);
  void Watch(Connection* connection);
  void Accept();
  void Welcome(Socket socket);
  bool DropOldestUnauthenticated();
  void Receive(Connection* connection);
  bool TakeMagic(Connection* connection);
  void HearHello(Connection* connection, const std::string& body);
  void RefuseUnproven(Connection* connection);
  void Flush(Connection* connection);
  Deadline CheckHelloLimit(Deadline now);
  void RemoveClosed();

  Socket listener_;
  Pipe wake_;
  Descriptor epoll_;
  const FrameServerOptions options_;
  std::unordered_map<int, std::unique_ptr<Connection>> connections_;  // by descriptor
  std::list<Connection*> unauthenticated_;                            // oldest first
  std::vector<int> closed_;
  bool accepts_ = false;     // epoll reports new connections
  Deadline accept_after_{};  // while no descriptors are left
  TurnedAway turned_away_;
  std::atomic<bool> stop_{false};
};

}  // namespace diapason::rendezvous
