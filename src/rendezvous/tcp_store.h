#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/frame.h"
#include "rendezvous/frame_link.h"
#include "rendezvous/handshake.h"
#include "rendezvous/socket.h"
#include "rendezvous/store.h"
#include "rendezvous/store_server.h"

namespace diapason::rendezvous {

// How a rank finds the store.
struct StoreAddress {
  std::string host = "localhost";
  int port = 29500;
  // Rank 0 listens on the first free one of this many ports, and the others look for it there: for
  // launchers that use the port itself.
  int ports = 1;
  std::string token;
  // The shared secret of the ranks (ReadSecret); "": neither side is authenticated.
  std::string secret;
  // Where rank 0 reports refused connections; may be empty.
  std::function<void(const std::string&)> log;
};

// A rank's connection to rank 0's store; on rank 0 it owns the server too. Thread-safe; a request
// of one thread delays the others by at most a tenth of a second, and among more than 100 ranks by
// a millisecond for each, at most one second.
class TcpStore : public RendezvousStore {
 public:
  // Returns when rank 0's store has accepted this rank and both have authenticated, if there is a
  // secret. It does not wait for the other ranks: Gather does.
  static Result<std::unique_ptr<TcpStore>> Join(const StoreAddress& address, int rank, int size,
                                                Deadline deadline);
  // Leaves the group normally.
  ~TcpStore() override;

  Status Set(const std::string& key, const std::string& value) override;
  Result<std::string> Get(const std::string& key, Deadline deadline) override;
  Result<std::vector<RankAnswer>> Collect(const std::string& key, const std::vector<int>& members,
                                          const std::string& value, bool until_loss,
                                          Deadline deadline) override;
  std::vector<int> Lost(const std::string& group = "") override;
  void GiveUp(const std::string& group) override;

  // The local address of the connection to rank 0.
  const std::string& local_address() const { return local_address_; }

 private:
  using Reply = Frame;

  TcpStore(int rank, int size) : rank_(rank), size_(size) {}
  Result<Reply> Ask(const std::string& frame, Deadline deadline);
  // Reads until a reply comes; processes notices on the way.
  Result<Reply> ReadAnswer(Deadline deadline);
  bool NoteNotice(FrameKind kind, const std::string& body);
  Status Unreachable(const Status& status);
  // Starts the store in this process; `*port` becomes the port it listens on.
  Status Serve(const StoreAddress& address, int* port);
  // One attempt to connect and say hello. `*again` is set if another attempt makes sense: always,
  // unless an authenticated store refuses.
  Status Greet(const StoreAddress& address, int port, Deadline deadline, Deadline reply_by,
               bool* again);

  const int rank_;
  const int size_;
  std::unique_ptr<StoreServer> server_;
  std::string local_address_;

  std::mutex mutex_;
  FrameLink link_;
  bool rank_0_left_ = false;
  std::set<int> lost_;
  std::set<std::pair<std::string, int>> gave_up_;
};

}  // namespace diapason::rendezvous
