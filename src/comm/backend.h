#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "comm/communicator.h"
#include "diapason/comm.h"
#include "rendezvous/store.h"

namespace diapason::comm {

// This process among the ranks, after the bootstrap.
struct RankInfo {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  int nodes = 1;
  // An address of this host at which the other ranks can reach it.
  std::string address = "127.0.0.1";
};

// Everything a backend needs to create its communicator.
struct Start {
  RankInfo place;
  rendezvous::RendezvousStore* store = nullptr;  // null: BackendFacts::own_store
  std::string name = "world";
  std::chrono::milliseconds timeout{600000};
  const GroupOptions* options = nullptr;
  std::function<void(const std::string&)> log;
};

class Backend {
 public:
  virtual ~Backend() = default;
  // Describes the backend on this machine. Starts nothing that outlives the call; may be called
  // without a job.
  virtual BackendInfo Look(const RankInfo& place) const = 0;
  virtual Result<std::unique_ptr<Communicator>> Create(const Start& start) = 0;
};

// The backend of that name, opened if it is a module; the error says why it is not available.
Result<Backend*> FindBackend(const std::string& name);

// The entry point of a module (libdiapason-comm-gloo.so, libdiapason-comm-mpi.so): its backend if
// `version` is the version it was built for, otherwise null, because the interface may differ.
inline constexpr char kModuleEntry[] = "diapason_comm_module";
using ModuleEntry = Backend* (*)(const char* version);

}  // namespace diapason::comm
