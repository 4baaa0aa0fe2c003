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

// Who takes part.
struct Membership {
  std::vector<int> job_ranks;  // in the order of the communicator's own ranks
  int rank = 0;
  std::string name;  // unique in the job
  rendezvous::RendezvousStore* store = nullptr;
  std::function<void(const std::string&)> log;

  int size() const { return static_cast<int>(job_ranks.size()); }
};

// One communicator of the library, from its creation to its end, with every wait bounded.
//
// It is a blocking one: a non-blocking one starts a thread for every call. The library then returns
// from two calls only when the other ranks have come along: from its creation, and from the first
// call of each kind, where it connects. The creation therefore has a thread of its own, and a call
// that is stuck is freed by CommAbort from another thread (Interrupt).
class Connection {
 public:
  static Result<std::unique_ptr<Connection>> Open(const NcclApi* api, gpu::Runtime* runtime,
                                                  int device, Membership membership,
                                                  Deadline deadline);
  // Ends it, in order if it is not broken; takes a few seconds at most.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const NcclApi& api() const { return *api_; }
  const Membership& membership() const { return membership_; }
  // Only inside the scope of an Inside, after its status was fine.
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

  // What broke the communicator; fine while nothing has.
  Status broken() const;
  // The same, or the Interrupt that is about to break it: what is looked at before a call.
  Status Usable() const;
  // What a call that waits has to look at: errors the library has found meanwhile, ranks that are
  // gone, an Interrupt. Cheap enough for every turn of a waiting loop.
  Status Look();
  // Ends the communicator because of `why`, once, and returns what broke it first. The operations
  // on the GPU end with it. With `wait`, returns when they have, or after a few seconds.
  Status Break(const Status& why, bool wait = true);
  // The error of a call that has returned `result`, with the ranks that are gone where that is
  // known within a moment.
  Status Explain(NcclResult result);
  // The same for the result of beginning a call. The environment may have made the communicator a
  // non-blocking one (NCCL_COMM_BLOCKING=0): then the call has begun when the library says so.
  Status Settle(NcclResult result, Deadline deadline);
  // From the watchdog's thread. Returns at once.
  void Interrupt(const std::string& reason) noexcept;

  // The end of the communicator; later calls do nothing. True when nothing of it is left on the
  // GPU.
  bool Close();

 private:
  // Work on a thread of its own, which is left alone when it does not end in time.
  class Errand;

  Connection(const NcclApi* api, gpu::Runtime* runtime, int device, Membership membership)
      : api_(api), runtime_(runtime), device_(device), membership_(std::move(membership)) {}
  Result<NcclUniqueId> ExchangeId(Deadline deadline);
  Status Create(const NcclUniqueId& id, Deadline deadline);
  // The error that names members that are gone; fine when all are there.
  Status LostMembers() const;
  void StartAbort() noexcept;
  void InterruptWith(const Status& why) noexcept;
  // The thread that looks after a call that is inside the library, as the caller cannot.
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
