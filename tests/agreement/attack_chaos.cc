#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

#include "attack.h"

namespace diapason::attack {
namespace {

// The kernel kills this process when this thread makes such a call: a death in the middle of a
// proposal, at a point that nobody had to build into the store.
void DieAt(int call, bool between_folders_only) {
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  if (between_folders_only) {
    // linkat(from, ..., to, ...) with different folders: the second half of a cell.
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 4));
    program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)));
    program.push_back(BPF_STMT(BPF_MISC | BPF_TAX, 0));
    program.push_back(
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args) + 2 * sizeof(uint64_t)));
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1));
  } else {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 1, 0));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

void DieAfter(std::chrono::nanoseconds time) {
  std::thread([time] {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
    }
    ::kill(::getpid(), SIGKILL);
  }).detach();
}

class ChaosStore : public agree::CellStore {
 public:
  ChaosStore(std::unique_ptr<agree::CellStore> store, const Plan& plan, int rank, Mutant mutant)
      : store_(std::move(store)),
        dice_(plan.seed, 1000 + static_cast<uint64_t>(rank)),
        delay_share_(plan.delay_share),
        mutant_(mutant),
        rank_(rank),
        dies_(plan.dies_inside == rank),
        dies_at_(dice_.Below(60)) {}

  using agree::CellStore::Forget;
  using agree::CellStore::Propose;
  using agree::CellStore::Read;
  Result<std::string> Propose(std::string_view key, std::string_view value,
                              Deadline deadline) override {
    if (mutant_ == Mutant::kHold && rank_ != 0 && value == "hold")
      return Unsaid(key, value, deadline);
    if (mutant_ == Mutant::kOff && value.substr(0, 4) == "off:") return std::string(value);
    Delay();
    PerhapsDie();
    auto stands = store_->Propose(key, value, deadline);
    Delay();
    return stands;
  }
  Result<std::optional<std::string>> Read(std::string_view key, Deadline deadline) override {
    Delay();
    return store_->Read(key, deadline);
  }
  void Forget(std::string_view prefix, Deadline deadline) override {
    store_->Forget(prefix, deadline);
  }
  void Done(std::string_view prefix, int members, Deadline deadline) override {
    store_->Done(prefix, members, deadline);
  }
  void KeepAlive(Deadline deadline) override { store_->KeepAlive(deadline); }
  void Leave(Deadline deadline) override { store_->Leave(deadline); }
  double Fullness() override { return store_->Fullness(); }
  std::string Describe() const override { return store_->Describe(); }
  bool Mine() const override { return store_->Mine(); }

 private:
  // What must not be done: to take an empty cell for a hold, and to tell nobody.
  Result<std::string> Unsaid(std::string_view key, std::string_view value, Deadline deadline) {
    const auto read = store_->Read(key, deadline);
    if (!read.ok()) return read.status();
    return read.value() ? *read.value() : std::string(value);
  }

  void Delay() {
    uint64_t time = 0;
    {
      const std::lock_guard lock(mutex_);
      if (!dice_.Chance(delay_share_)) return;
      time = dice_.Chance(0.05) ? dice_.Below(3000) : dice_.Below(150);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(time));
  }

  void PerhapsDie() {
    const std::lock_guard lock(mutex_);
    if (!dies_ || proposals_++ < dies_at_) return;
    if (dice_.Chance(0.4)) {
      DieAfter(std::chrono::nanoseconds(dice_.Below(40000)));
      dies_ = false;
      return;
    }
    switch (dice_.Below(8)) {
      case 0:
        return DieAt(SYS_openat, false);
      case 1:
        return DieAt(SYS_write, false);
      case 2:
        return DieAt(SYS_fsync, false);
      case 3:
        return DieAt(SYS_linkat, false);
      case 4:
        return DieAt(SYS_linkat, true);
      case 5:
        return DieAt(SYS_unlinkat, false);
      case 6:
        return DieAt(SYS_read, false);
      default:
#ifdef SYS_poll
        return DieAt(SYS_poll, false);
#else
        return DieAt(SYS_ppoll, false);
#endif
    }
  }

  std::unique_ptr<agree::CellStore> store_;
  std::mutex mutex_;
  Dice dice_;
  const double delay_share_;
  const Mutant mutant_;
  const int rank_;
  bool dies_;
  uint64_t dies_at_;
  uint64_t proposals_ = 0;
};

}  // namespace

std::unique_ptr<agree::CellStore> WithChaos(std::unique_ptr<agree::CellStore> store,
                                            const Plan& plan, int rank, Mutant mutant) {
  return std::make_unique<ChaosStore>(std::move(store), plan, rank, mutant);
}

}  // namespace diapason::attack
