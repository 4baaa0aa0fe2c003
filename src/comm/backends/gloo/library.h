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

// What Gloo throws, as a Status: a time-out, a lost peer, or trouble of the system.
Status FromGloo(const std::exception& error);
// Runs a call into Gloo; nothing it throws gets further.
Status GuardGloo(const std::function<void()>& call);

// The socket side of Gloo: the interface of GLOO_SOCKET_IFNAME if that is set, else the one on
// which this host reaches rank 0.
Result<std::shared_ptr<gloo::transport::Device>> OpenGlooDevice(const RankInfo& place);

// How the sockets of a context wait; the numbers of the vocabulary's Gloo protocols.
enum class GlooWait : uint8_t { kAsync = 0, kBlocking = 1, kPolling = 2 };

// Connections between all ranks, for one algorithm: Gloo stalls where several share one.
class GlooMesh : public gloo::Context {
 public:
  using gloo::Context::Context;

  // Every rank calls this with the same key. `members` are the ranks in the whole job.
  Status Connect(rendezvous::RendezvousStore* store, const std::string& key,
                 const std::vector<int>& members,
                 const std::shared_ptr<gloo::transport::Device>& device, GlooWait wait,
                 std::chrono::milliseconds timeout, Deadline deadline);
  // From any thread, also while Connect runs: whoever waits on a connection gets an error.
  void Close() noexcept;

 private:
  Status MakePairs(const std::shared_ptr<gloo::transport::Device>& device,
                   std::chrono::milliseconds timeout, std::string* addresses);

  std::mutex mutex_;
  bool ready_ = false;  // the pairs are there
  bool closed_ = false;
};

}  // namespace diapason::comm
