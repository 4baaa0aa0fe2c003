#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agree/cell_protocol.h"
#include "base/status.h"
#include "cell_server/cell_log.h"
#include "cell_server/cell_table.h"
#include "rendezvous/frame_server.h"

namespace diapason::cell_server {

struct CellServerOptions {
  std::string secret;  // clients must know it
  std::string file;    // in which cells survive the process; "": they do not
  // Limit on the memory of all cells together; beyond it a proposal is refused, and changes
  // nothing.
  size_t stored = size_t{512} << 20U;
  size_t jobs = 4096;
  size_t connections = size_t{1} << 17U;
  size_t unauthenticated = 16384;
  std::chrono::milliseconds hello_limit{5000};
  // Jobs to which no client is connected are removed after this time; and after the shorter one if
  // a client has left.
  std::chrono::seconds unused{86400};
  std::chrono::seconds unused_after_leave{3600};
  std::function<void(const std::string&)> log;  // refused connections; may be empty
};

// The server of a store at tcp:// (agree/tcp_store.cc): write-once cells of any number of jobs.
// Serves in the thread that calls Run(); the kernel's limit on descriptors and the options bound
// what clients can make it keep.
//
// All requests that have arrived are handled, their changes are written to the file at once, and
// then the replies are sent: a reply tells nothing that is not on the disk. If the file cannot be
// written, the changes are undone and the clients told to try again.
//
// A job is removed when its last client has left, or when no client was connected for long.
class CellServer : public rendezvous::FrameServer {
 public:
  // Reads the file, if there is one.
  static Result<std::unique_ptr<CellServer>> Open(rendezvous::Socket listener,
                                                  CellServerOptions options);

  // Until Stop(). Fails if it cannot know what is in its file, or cannot wait for connections.
  Status Run();

  // For statistics and tests; not while Run() runs in another thread.
  CellTable& table() { return table_; }
  uint64_t requests() const { return requests_; }

 private:
  struct Client : Connection {
    std::string job;
    std::string nonce_of_job;  // "": no job is open
    uint64_t id = 0;
    bool guest = false;
    bool answered = false;  // its reply waits for the file
    agree::CellReply reply;
  };

  CellServer(rendezvous::Socket listener, CellServerOptions options);
  Status Load();

  std::unique_ptr<Connection> NewConnection() override { return std::make_unique<Client>(); }
  size_t MostUnauthenticated() const override { return options_.unauthenticated; }
  uint32_t MostRequest() const override { return agree::kMostCellRequest; }
  void Hear(Connection* connection, const rendezvous::Hello& hello) override;
  void Handle(Connection* connection, rendezvous::FrameKind kind, const std::string& body) override;
  bool Ready(const Connection& connection) const override;
  void Closed(Connection* connection) override;
  Deadline EndRound(Deadline now) override;

  // Each fills the reply; false: the request cannot be read.
  bool Answer(Client* client, rendezvous::FrameKind kind, const std::string& body);
  bool OpenJob(Client* client, const std::string& body);
  bool Propose(Client* client, CellJob* job, const std::string& body);
  bool Read(Client* client, CellJob* job, const std::string& body);
  bool Done(Client* client, CellJob* job, const std::string& body);
  void Leave(Client* client);

  // The job that the client has opened; nullptr if it is gone.
  CellJob* JobOf(const Client& client);
  // Changes the table, and the file at the end of the round.
  void Change(const std::string& record);
  bool Commit();
  void Undo();
  void SendReplies();
  void RemoveUnused(Deadline now);
  void RewriteIfLarge();

  const CellServerOptions options_;
  CellTable table_;
  std::optional<CellLog> log_;
  std::vector<Client*> answered_;  // of this round
  bool stopped_taking_ = false;    // a client's frames wait for the file
  Deadline next_removal_{};
  uint64_t requests_ = 0;
  Status failed_;
};

}  // namespace diapason::cell_server
