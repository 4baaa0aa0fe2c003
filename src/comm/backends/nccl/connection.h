#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "comm/backends/nccl/library.h"
#include "comm/communicator.h"
#include "comm/gpu/runtime.h"
#include "rendezvous/store.h"

namespace diapason::comm::nccl {

// The members of a communicator.
struct Membership {
  std::vector<int> job_ranks;  // in the order of the communicator's own ranks
  int rank = 0;
  std::string name;  // unique in the job
  rendezvous::RendezvousStore* store = nullptr;
  std::function<void(const std::string&)> log;

  int size() const { return static_cast<int>(job_ranks.size()); }
};

// One communicator of the library, from init to its end; every wait is bounded.
//
// It is a blocking one: a non-blocking one starts a thread for every call. The library then returns
// from two calls only when the other ranks have made them too: from init, and from the first call
// of each kind, where it connects. So init runs on a thread of its own, and a stuck call is freed
// by CommAbort from another thread (Interrupt).
class Connection {
 public:
  static Result<std::unique_ptr<Connection>> Open(const NcclApi* api, gpu::Runtime* runtime,
                                                  int device, Membership membership,
                                                  Deadline deadline);
  // Ends it, with CommFinalize if it is not broken; takes a few seconds at most.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const NcclApi& api() const { return *api_; }
  const Membership& membership() const { return membership_; }
  // Valid only inside the scope of an Inside whose status was OK.
  NcclComm comm() const { return comm_; }

  // The scope of a call into the library, which Interrupt may end from another thread.
  class Inside {
   public:
    explicit Inside(Connection* connection) : connection_(connection) {
      connection_->entries_.fetch_add(1);
      before_ = connection_->inside_.exchange(true);
    }
    ~Inside() { connection_->inside_.store(before_); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    Connection* connection_;
    bool before_ = false;
  };

  // The error that broke the communicator; OK while it works.
  Status broken() const;
  // The same, or the Interrupt that is about to break it; checked before each call.
  Status Usable() const;
  // Checked in every iteration of a waiting loop: errors the library has found, lost ranks, an
  // Interrupt. Cheap.
  Status Look();
  // Aborts the communicator because of `why`, once, and returns the first error. The operations on
  // the GPU end with it. With `wait`, returns when they have ended, or after a few seconds.
  Status Break(const Status& why, bool wait = true);
  // The error for a call that returned `result`, with the lost ranks if they are known within a
  // moment.
  Status Explain(NcclResult result);
  // The same for the result of starting a call. The environment may have made the communicator
  // non-blocking (NCCL_COMM_BLOCKING=0): then this waits until the library reports that the call
  // has begun.
  Status Settle(NcclResult result, Deadline deadline);
  // Called on the watchdog's thread. Returns at once.
  void Interrupt(const std::string& reason) noexcept;

  // Ends the communicator; later calls do nothing. True if nothing of it is left on the GPU.
  bool Close();

 private:
  // Work on its own thread, which is abandoned if it does not end in time.
  class Errand;

  Connection(const NcclApi* api, gpu::Runtime* runtime, int device, Membership membership)
      : api_(api), runtime_(runtime), device_(device), membership_(std::move(membership)) {}
  Result<NcclUniqueId> ExchangeId(Deadline deadline);
  Status Create(const NcclUniqueId& id, Deadline deadline);
  // An error that names lost members; OK if there are none.
  Status LostMembers() const;
  void StartAbort() noexcept;
  void InterruptWith(const Status& why) noexcept;
  // The body of the thread that monitors calls inside the library.
  void LookAfterCalls();

  const NcclApi* api_;
  gpu::Runtime* runtime_;
  int device_;
  Membership membership_;
  NcclComm comm_ = nullptr;

  std::atomic<uint64_t> entries_{0};
  std::atomic<bool> inside_{false};
  std::atomic<bool> interrupted_{false};
  std::atomic<bool> aborted_{false};
  mutable std::mutex mutex_;
  Status broken_;                  // guarded by mutex_
  Status interruption_;            // guarded by mutex_
  std::shared_ptr<Errand> abort_;  // guarded by mutex_
  bool leaving_ = false;           // guarded by mutex_
  std::condition_variable leave_;
  std::thread lookout_;
  bool closed_ = false;
  bool gone_ = false;
  std::chrono::steady_clock::time_point last_look_;
  std::chrono::steady_clock::time_point last_store_look_;
};

}  // namespace diapason::comm::nccl
