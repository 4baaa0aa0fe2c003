#pragma once

#include <gloo/algorithm.h>
#include <gloo/context.h>
#include <gloo/transport/device.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "comm/backend.h"
#include "comm/communicator.h"

namespace diapason::comm {

// An exception of Gloo as a Status: a time-out, a lost peer, or a system error.
Status FromGloo(const std::exception& error);
// Runs a call into Gloo and converts its exceptions.
Status GuardGloo(const std::function<void()>& call);

// Gloo's socket device: the interface of GLOO_SOCKET_IFNAME if set, else the one on which this host
// reaches rank 0.
Result<std::shared_ptr<gloo::transport::Device>> OpenGlooDevice(const RankInfo& place);

// How the sockets of a context wait; numbers as in the domain's Gloo protocols.
enum class GlooWait : uint8_t { kAsync = 0, kBlocking = 1, kPolling = 2 };

// Connections between all ranks, for one algorithm: Gloo stalls if several algorithms share them.
class GlooMesh : public gloo::Context {
 public:
  using gloo::Context::Context;

  // Every rank calls this with the same key. `members` are the ranks in the whole job.
  Status Connect(rendezvous::RendezvousStore* store, const std::string& key,
                 const std::vector<int>& members,
                 const std::shared_ptr<gloo::transport::Device>& device, GlooWait wait,
                 std::chrono::milliseconds timeout, Deadline deadline);
  // Thread-safe, also during Connect: threads that wait on a connection get an error.
  void Close() noexcept;

 private:
  Status MakePairs(const std::shared_ptr<gloo::transport::Device>& device,
                   std::chrono::milliseconds timeout, std::string* addresses);

  std::mutex mutex_;
  bool ready_ = false;  // the pairs are there
  bool closed_ = false;
};

}  // namespace diapason::comm
