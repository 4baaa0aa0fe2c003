// A simulated GPU and NCCL, for tests of the code above them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "comm/backends/nccl/library.h"
#include "comm/gpu/runtime.h"
#include "rendezvous/store.h"

namespace diapason::comm::nccl {

// Work completes at once or, while the stream is blocked, when it is unblocked.
class FakeGpu : public gpu::Runtime {
 public:
  ~FakeGpu() override {
    for (void* memory : device_) std::free(memory);
    for (void* memory : pinned_) std::free(memory);
  }

  void Put(std::function<void()> work) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (held_) {
      waiting_.push_back(std::move(work));
    } else {
      work();
    }
  }
  void HoldUp() {
    const std::lock_guard<std::mutex> lock(mutex_);
    held_ = true;
  }
  void LetGo() {
    const std::lock_guard<std::mutex> lock(mutex_);
    held_ = false;
    for (const auto& work : waiting_) work();
    waiting_.clear();
  }
  size_t allocated() const { return device_.size() + pinned_.size(); }
  bool capturing = false;
  int follows = 0;
  std::vector<uint32_t> rounds;  // of every kernel that computes
  std::atomic<int> bound{0};     // threads that are using the device

  int DeviceCount() const override { return 1; }
  std::string DeviceName(int /*device*/) const override { return "Fake"; }
  std::string DeviceId(int /*device*/) const override { return "fake-0"; }
  Status Bind(int /*device*/) override { return ++bound, Status(); }
  void* Current() const override { return nullptr; }
  void Restore(void* /*current*/) override { --bound; }
  bool IsDevicePointer(const void* pointer) const override {
    return device_.count(const_cast<void*>(pointer)) > 0;
  }
  Result<void*> Allocate(size_t bytes) override {
    return *device_.insert(std::malloc(bytes)).first;
  }
  void Free(void* pointer) override {
    device_.erase(pointer);
    std::free(pointer);
  }
  Result<void*> AllocatePinned(size_t bytes) override {
    return *pinned_.insert(std::malloc(bytes)).first;
  }
  void FreePinned(void* pointer) override {
    pinned_.erase(pointer);
    std::free(pointer);
  }
  Result<void*> CreateStream() override { return static_cast<void*>(this); }
  void DestroyStream(void* /*stream*/) override {}
  Status FollowDefault(void* /*stream*/, void* /*event*/) override { return ++follows, Status(); }
  Status WaitForEvent(void* /*stream*/, void* /*event*/) override { return {}; }
  bool IsCapturing(void* /*stream*/) const override { return capturing; }
  Status Copy(void* out, const void* in, size_t bytes, void* /*stream*/) override {
    Put([=] { std::memcpy(out, in, bytes); });
    return {};
  }
  Status CallHost(void (*function)(void*), void* argument, void* /*stream*/) override {
    Put([=] { function(argument); });
    return {};
  }
  Result<void*> CreateEvent() override { return static_cast<void*>(new std::atomic<bool>(false)); }
  void DestroyEvent(void* event) override { delete static_cast<std::atomic<bool>*>(event); }
  Status RecordEvent(void* event, void* /*stream*/) override {
    auto* done = static_cast<std::atomic<bool>*>(event);
    done->store(false);
    Put([=] { done->store(true); });
    return {};
  }
  Result<bool> EventDone(void* event) override {
    return static_cast<std::atomic<bool>*>(event)->load();
  }
  Result<double> Elapsed(void* /*from*/, void* /*to*/) override { return 0.25; }
  bool Converts() const override { return false; }
  Status Convert(void* /*out*/, DataType /*out_type*/, const void* /*in*/, DataType /*in_type*/,
                 size_t /*count*/, void* /*stream*/) override {
    return Internal("the fake converts nothing");
  }
  Status Compute(uint32_t count, void* /*stream*/) override {
    rounds.push_back(count);
    return {};
  }

 private:
  std::mutex mutex_;
  bool held_ = false;
  std::deque<std::function<void()>> waiting_;
  std::set<void*> device_;
  std::set<void*> pinned_;
};

// The library as one rank sees it; the other ranks contribute the same data as this one.
class FakeNccl {
 public:
  explicit FakeNccl(FakeGpu* gpu) : gpu_(gpu) { current_ = this; }
  ~FakeNccl() { current_ = nullptr; }
  FakeNccl(const FakeNccl&) = delete;
  FakeNccl& operator=(const FakeNccl&) = delete;

  // Faults to inject.
  bool operations_hang = false;         // on the GPU, until the communicator is aborted
  std::atomic<bool> calls_hang{false};  // in the library, likewise
  std::atomic<bool> creation_hangs{false};
  std::atomic<int> async_error{0};
  // Counters of what was called.
  std::atomic<int> aborts{0};
  std::atomic<int> destroys{0};
  std::atomic<int> groups{0};
  std::atomic<int> messages{0};
  std::atomic<bool> inside{false};  // a call is stuck in the library

  NcclApi Api() {
    NcclApi api{};
    api.version = 22809;
    api.title = "NCCL";
    api.GetUniqueId = [](NcclUniqueId*) { return kSuccess; };
    api.CommInitRankConfig = [](NcclComm* comm, int size, NcclUniqueId, int, NcclConfig*) {
      while (current_->creation_hangs) Nap();
      current_->size_ = size;
      *comm = current_;
      return kSuccess;
    };
    api.CommFinalize = [](NcclComm) { return kSuccess; };
    api.CommDestroy = [](NcclComm) { return ++current_->destroys, kSuccess; };
    api.CommAbort = [](NcclComm) {
      current_->calls_hang = false;
      current_->gpu_->LetGo();
      return ++current_->aborts, kSuccess;
    };
    api.CommGetAsyncError = [](NcclComm, NcclResult* error) {
      *error = current_->async_error;
      return kSuccess;
    };
    api.GetErrorString = [](NcclResult) { return "something"; };
    api.GetLastError = [](NcclComm) { return "a warning"; };
    api.GroupStart = [] { return ++current_->groups, kSuccess; };
    api.GroupEnd = [] { return kSuccess; };
    api.AllReduce = [](const void* in, void* out, size_t count, int, int, NcclComm, void*) {
      FakeNccl& library = *current_;
      const bool stuck = library.calls_hang;
      library.inside = stuck;
      while (library.calls_hang) Nap();
      if (stuck) return kSystemError;
      if (library.operations_hang) library.gpu_->HoldUp();
      library.gpu_->Put([=, size = library.size_] {
        for (size_t i = 0; i < count; ++i) {
          static_cast<float*>(out)[i] = static_cast<const float*>(in)[i] * static_cast<float>(size);
        }
      });
      return kSuccess;
    };
    api.AllGather = [](const void* in, void* out, size_t count, int, NcclComm, void*) {
      current_->gpu_->Put([=, size = current_->size_] {
        for (int rank = 0; rank < size; ++rank) {
          std::memcpy(static_cast<float*>(out) + static_cast<size_t>(rank) * count, in, count * 4);
        }
      });
      return kSuccess;
    };
    api.Send = [](const void*, size_t, int, int, NcclComm, void*) {
      return ++current_->messages, kSuccess;
    };
    api.Recv = [](void* out, size_t count, int, int, NcclComm, void*) {
      current_->gpu_->Put([=] { std::fill_n(static_cast<float*>(out), count, 8.0F); });
      return ++current_->messages, kSuccess;
    };
    return api;
  }

 private:
  static void Nap() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }
  inline static FakeNccl* current_ = nullptr;
  FakeGpu* gpu_;
  int size_ = 0;
};

class FakeStore : public rendezvous::RendezvousStore {
 public:
  Status Set(const std::string& /*key*/, const std::string& /*value*/) override { return {}; }
  Result<std::string> Get(const std::string& /*key*/, Deadline /*deadline*/) override {
    return TimedOut("this store has no values");
  }
  Result<std::vector<rendezvous::RankAnswer>> Collect(const std::string& /*key*/,
                                                      const std::vector<int>& /*members*/,
                                                      const std::string& /*value*/,
                                                      bool /*until_loss*/,
                                                      Deadline /*deadline*/) override {
    return std::vector<rendezvous::RankAnswer>();
  }
  std::vector<int> Lost(const std::string& /*group*/) override {
    const int rank = lost;
    return rank < 0 ? std::vector<int>() : std::vector<int>{rank};
  }
  void GiveUp(const std::string& /*group*/) override {}

  std::atomic<int> lost{-1};
};

}  // namespace diapason::comm::nccl
