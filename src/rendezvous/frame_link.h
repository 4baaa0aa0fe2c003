#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "rendezvous/frame.h"
#include "rendezvous/handshake.h"
#include "rendezvous/socket.h"

namespace diapason::rendezvous {

struct Frame {
  FrameKind kind = FrameKind::kFine;
  std::string body;
};

// The client's end of a connection to a FrameServer. Every call is bounded by its deadline. Not
// thread-safe. Closing sends nothing: in a forked child the connection still belongs to the parent.
class FrameLink {
 public:
  // One attempt. Closes an open connection first. kNotFound: there is no such host; kUnavailable:
  // no process listens there.
  Status Connect(const std::string& host, int port, Deadline deadline);
  // Authenticates both ends of a new connection, after which the server's frames may have
  // kAnswerLimit bytes. The server's reply to the hello: its kind and its text. Fails with
  // kUnavailable if the peer is no server of this protocol or cannot prove that it knows the
  // secret, with kInvalid if it says that it has another one, with kPeerLost if it closed the
  // connection. `shared.nonce` is not used. The server has
  // until `deadline` to show that it is one, and until `reply_by` to reply: it may admit this
  // client in any moment until then, and a client that gave up would be a lost one.
  Result<Frame> Greet(Hello hello, HandshakeInputs shared, Deadline deadline, Deadline reply_by);

  Status Send(const std::string& frame, Deadline deadline);
  // The next frame.
  Result<Frame> Receive(Deadline deadline);
  // The next frame that has arrived whole; false: there is none. `*damaged`: there never will be.
  bool Take(Frame* frame, bool* damaged);
  // Reads what has arrived, without waiting; kPeerLost if the connection was closed.
  Status ReadArrived();

  bool open() const { return socket_.open(); }
  void Close() { socket_.Close(); }
  const Socket& socket() const { return socket_; }

 private:
  Status ReadMagic(Deadline deadline);

  Socket socket_;
  FrameBuffer in_;
  uint32_t limit_ = kUnauthenticatedLimit;  // of frames from the server
};

}  // namespace diapason::rendezvous
