#include "comm/backends/nccl/connection.h"

#include <algorithm>
#include <system_error>

#include "base/encoding.h"
#include "base/text.h"

namespace diapason::comm::nccl {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Within the 5 s in which a rank must return after its limit or the death of another rank.
constexpr milliseconds kAbortLimit{3000};
constexpr milliseconds kCloseLimit{5000};
// How long a network error waits for the report which rank has ended.
constexpr milliseconds kNewsLimit{1000};
constexpr milliseconds kLookInterval{1};
constexpr milliseconds kStoreLookInterval{10};
constexpr milliseconds kStoreSlice{500};
constexpr milliseconds kLookoutInterval{100};

}  // namespace

class Connection::Errand {
 public:
  // If no thread can be created, the work runs on this one.
  static std::shared_ptr<Errand> Begin(std::function<void()> work) {
    auto errand = std::make_shared<Errand>();
    auto run = [errand, work = std::move(work)] {
      work();
      const std::lock_guard<std::mutex> lock(errand->mutex_);
      errand->done_ = true;
      errand->wake_.notify_all();
    };
    try {
      std::thread(run).detach();
    } catch (const std::system_error&) {
      run();
    }
    return errand;
  }

  bool WaitFor(milliseconds limit) {
    std::unique_lock<std::mutex> lock(mutex_);
    return wake_.wait_for(lock, limit, [this] { return done_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
};

Result<std::unique_ptr<Connection>> Connection::Open(const NcclApi* api, gpu::Runtime* runtime,
                                                     int device, Membership membership,
                                                     Deadline deadline) {
  std::unique_ptr<Connection> connection(
      new Connection(api, runtime, device, std::move(membership)));
  const Result<NcclUniqueId> id = connection->ExchangeId(deadline);
  if (!id.ok()) return id.status().WithContext("the communicator's id");
  RETURN_IF_ERROR(connection->Create(id.value(), deadline));
  return connection;
}

Result<NcclUniqueId> Connection::ExchangeId(Deadline deadline) {
  const std::string key = "nccl/" + membership_.name + "/id";
  NcclUniqueId id;
  if (membership_.rank == 0) {
    const NcclResult result = api_->GetUniqueId(&id);
    if (result != kSuccess) return Unavailable(api_->ErrorText(result));
    RETURN_IF_ERROR(membership_.store->Set(
        key, EncodeBase64Url(std::string_view(id.bytes.data(), id.bytes.size()))));
    return id;
  }
  for (;;) {
    const auto now = steady_clock::now();
    const Result<std::string> text =
        membership_.store->Get(key, std::min<Deadline>(deadline, now + kStoreSlice));
    if (text.ok()) {
      const Result<std::string> bytes = DecodeBase64Url(text.value());
      if (!bytes.ok() || bytes.value().size() != id.bytes.size()) {
        return Internal("it is not what the library makes");
      }
      std::copy(bytes.value().begin(), bytes.value().end(), id.bytes.begin());
      return id;
    }
    if (text.status().code() != ErrorCode::kTimeout || now >= deadline) return text.status();
    RETURN_IF_ERROR(LostMembers());
  }
}

Status Connection::Create(const NcclUniqueId& id, Deadline deadline) {
  // The library cannot be interrupted during init, because the communicator's handle is not known
  // yet. After the time limit the thread is abandoned, and aborts the communicator itself if init
  // ever returns.
  struct CommCreation {
    std::mutex mutex;
    bool abandoned = false;
    NcclComm comm = nullptr;
    NcclResult result = kSuccess;
    Status bound;
  };
  auto creation = std::make_shared<CommCreation>();
  auto errand = Errand::Begin([creation, id, api = api_, runtime = runtime_, device = device_,
                               size = membership_.size(), rank = membership_.rank] {
    const gpu::Bound bound(runtime, device);
    NcclComm comm = nullptr;
    NcclResult result = kSuccess;
    if (bound.status().ok()) {
      NcclConfig config;
      config.blocking = 1;
      result = api->CommInitRankConfig(&comm, size, id, rank, &config);
      // The environment may have made it non-blocking (NCCL_COMM_BLOCKING=0).
      while (result == kInProgress) {
        std::this_thread::sleep_for(kLookInterval);
        const NcclResult asked = api->CommGetAsyncError(comm, &result);
        if (asked != kSuccess) result = asked;
      }
    }
    const std::lock_guard<std::mutex> lock(creation->mutex);
    creation->bound = bound.status();
    creation->result = result;
    creation->comm = comm;
    if (creation->abandoned && result == kSuccess && comm != nullptr) api->CommAbort(comm);
  });

  Status status;
  while (!errand->WaitFor(kStoreLookInterval)) {
    status = LostMembers();
    if (status.ok() && steady_clock::now() >= deadline) {
      status = TimedOut(api_->title + " has not made its communicator");
    }
    if (!status.ok()) break;
  }
  const std::lock_guard<std::mutex> lock(creation->mutex);
  if (!status.ok()) {
    creation->abandoned = true;
    return status;
  }
  if (!creation->bound.ok()) return creation->bound;
  if (creation->result != kSuccess) return Explain(creation->result);
  comm_ = creation->comm;
  if (membership_.size() > 1) {
    try {
      lookout_ = std::thread([this] { LookAfterCalls(); });
    } catch (const std::system_error&) {
      // Without the thread, a stuck call notices a lost rank only at its time limit.
    }
  }
  return Status();
}

void Connection::LookAfterCalls() {
  uint64_t seen = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!leave_.wait_for(lock, kLookoutInterval, [this] { return leaving_; })) {
    const uint64_t entry = entries_.load();
    const bool long_inside = inside_.load() && entry == seen;
    seen = entry;
    if (!long_inside || aborted_.load()) continue;
    lock.unlock();
    if (const Status lost = LostMembers(); !lost.ok()) InterruptWith(lost);
    lock.lock();
  }
}

Status Connection::LostMembers() const {
  std::vector<std::string> gone;
  for (const int rank : membership_.store->Lost(membership_.name)) {
    const auto& ours = membership_.job_ranks;
    if (std::find(ours.begin(), ours.end(), rank) != ours.end()) {
      gone.push_back(Format("rank {}", rank));
    }
  }
  if (gone.empty()) return Status();
  return PeerLost(Join(gone, ", ") + (gone.size() == 1 ? " is gone" : " are gone"));
}

Status Connection::Explain(NcclResult result) {
  const std::string text = api_->ErrorText(result);
  if (result != kSystemError && result != kRemoteError) return Internal(text);
  // A connection broke. The store knows which rank has ended, perhaps a moment later.
  const auto until = steady_clock::now() + kNewsLimit;
  Status lost = LostMembers();
  while (lost.ok() && !interrupted_.load() && steady_clock::now() < until) {
    std::this_thread::sleep_for(kStoreLookInterval);
    lost = LostMembers();
  }
  if (!lost.ok()) return PeerLost(Format("{}; {}", lost.message(), text));
  return Status::Error(result == kRemoteError ? ErrorCode::kPeerLost : ErrorCode::kInternal, text);
}

Status Connection::Settle(NcclResult result, Deadline deadline) {
  while (result == kInProgress) {
    RETURN_IF_ERROR(Look());
    if (steady_clock::now() >= deadline) return TimedOut("the call could not be begun");
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    const NcclResult asked = api_->CommGetAsyncError(comm_, &result);
    if (asked != kSuccess) result = asked;
  }
  if (result == kSuccess) return Status();
  return Explain(result);
}

Status Connection::broken() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return broken_;
}

Status Connection::Usable() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return interrupted_.load() ? interruption_ : broken_;
}

Status Connection::Look() {
  if (interrupted_.load() || aborted_.load()) return Usable();
  const auto now = steady_clock::now();
  if (now - last_look_ < kLookInterval) return Status();
  last_look_ = now;
  NcclResult found = kSuccess;
  const NcclResult asked = api_->CommGetAsyncError(comm_, &found);
  if (asked != kSuccess) found = asked;
  if (found != kSuccess && found != kInProgress) return Explain(found);
  if (now - last_store_look_ < kStoreLookInterval) return Status();
  last_store_look_ = now;
  return LostMembers();
}

void Connection::StartAbort() noexcept {
  if (aborted_.exchange(true)) return;
  // The library frees it while another thread may still be returning from a call: the library sets
  // its flags first, and takes far longer to end its own threads than that thread takes to see
  // them. There is no other way to end a blocking call.
  auto errand = Errand::Begin([api = api_, runtime = runtime_, device = device_, comm = comm_] {
    const gpu::Bound bound(runtime, device);
    api->CommAbort(comm);
  });
  const std::lock_guard<std::mutex> lock(mutex_);
  abort_ = std::move(errand);
}

Status Connection::Break(const Status& why, bool wait) {
  // After a time-out, name the ranks that did not make the call, if known.
  Status reason = why;
  if (why.code() == ErrorCode::kTimeout) {
    if (const Status lost = LostMembers(); !lost.ok()) reason = lost;
  }
  Status first;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (broken_.ok()) broken_ = interrupted_.load() ? interruption_ : reason;
    first = broken_;
  }
  StartAbort();
  if (!wait) return first;
  std::shared_ptr<Errand> abort;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    abort = abort_;
  }
  if (abort != nullptr && !abort->WaitFor(kAbortLimit)) {
    membership_.log(Format("{} does not end the communicator; left behind", api_->title));
  }
  return first;
}

void Connection::Interrupt(const std::string& reason) noexcept { InterruptWith(TimedOut(reason)); }

void Connection::InterruptWith(const Status& why) noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (interruption_.ok()) interruption_ = why;
  }
  interrupted_.store(true);
  // A waiting thread sees the flag and aborts the communicator itself. A thread inside the library
  // cannot; one that enters it now checks the flag first.
  if (inside_.load()) StartAbort();
}

bool Connection::Close() {
  if (closed_) return gone_;
  closed_ = true;
  if (lookout_.joinable()) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      leaving_ = true;
    }
    leave_.notify_all();
    lookout_.join();
  }
  if (comm_ == nullptr) return gone_ = true;
  std::shared_ptr<Errand> end;
  if (aborted_.load()) {
    const std::lock_guard<std::mutex> lock(mutex_);
    end = abort_;
  } else {
    aborted_.store(true);  // no further abort
    end = Errand::Begin([api = api_, runtime = runtime_, device = device_, comm = comm_] {
      const gpu::Bound bound(runtime, device);
      // Both wait for the other ranks of this host, which may be late or gone.
      api->CommFinalize(comm);
      api->CommDestroy(comm);
    });
  }
  gone_ = end != nullptr && end->WaitFor(kCloseLimit);
  return gone_;
}

Connection::~Connection() { Close(); }

}  // namespace diapason::comm::nccl
