// One run: its plan, its ranks, what is done to them, and what came of it.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "agree/stores.h"
#include "agree/testing.h"
#include "attack.h"
#include "cell_server/testing.h"

namespace diapason::attack {
namespace {

namespace fs = std::filesystem;

Plan MakePlan(uint64_t seed, const std::string& store, Mutant mutant) {
  Dice dice(seed, 1);
  Plan plan;
  plan.seed = seed;
  plan.ranks = 2 + static_cast<int>(dice.Below(kMostRanks - 1));
  plan.contexts = 1 + static_cast<int>(dice.Below(kMostContexts));
  plan.calls = 40 + static_cast<int>(dice.Below(kMostCalls - 40));
  plan.rounds = dice.Chance(0.3) ? 2 : 1;
  plan.opening_calls = 1 + dice.Below(6);
  plan.hold_calls = 1 + dice.Below(8);
  const uint64_t windows[] = {0, 1, 4, 32};
  plan.window = windows[dice.Below(4)];
  const double shares[] = {0, 0.5, 1, 1};
  plan.propose_share = shares[dice.Below(4)];
  plan.simulate_share = dice.Chance(0.3) ? 0.05 : 0;
  plan.delay_share = dice.Chance(0.5) ? 0.05 : 0;
  plan.remains = dice.Chance(0.2);
  plan.cut = (store == "redis" || store == "tcp") && dice.Chance(0.2);
  const auto victim = [&] {
    return static_cast<int>(dice.Below(static_cast<uint64_t>(plan.ranks)));
  };
  const bool calm = mutant == Mutant::kNone && dice.Chance(0.25);
  if (!calm) {
    const int kinds = dice.Chance(0.7) ? 1 : 2;
    for (int i = 0; i < kinds; ++i) {
      switch (dice.Below(7)) {
        case 0:
          plan.killed = victim();
          break;
        case 1:
        case 2:
          plan.dies_inside = victim();
          break;
        case 3:
          plan.late = victim();
          break;
        case 4:
          if (dice.Chance(0.3)) plan.different = victim();
          break;
        case 5:
          plan.emptied = true;
          break;
        default:
          plan.moved = true;
      }
    }
  }
  // A rule can only be broken where it matters.
  if (mutant != Mutant::kNone) {
    plan.propose_share = 1;
    plan.simulate_share = 0;
    plan.opening_calls = 1;
    plan.window = 1;
  }
  if (mutant == Mutant::kOff) plan.late = victim();
  if (mutant == Mutant::kError) plan.emptied = true;
  plan.join_limit_ms = plan.Calm() ? 120000 : 40;
  plan.strike_us = static_cast<int>(dice.Below(dice.Chance(0.5) ? 3000 : 30000));
  return plan;
}

class StoreGround : public Ground {
 public:
  StoreGround(std::string store, Mutant mutant) : store_(std::move(store)), mutant_(mutant) {}

  bool Prepare() {
    board_ = static_cast<Board*>(
        ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (board_ == MAP_FAILED) return false;
    if (store_ == "redis") server_ = agree::RedisServer::Start();
    if (store_ == "tcp") cells_ = std::make_unique<cell_server::ServerProcess>();
    return store_ != "redis" || server_ != nullptr;
  }

  void Run(uint64_t seed, Tally* tally) override {
    const Plan plan = MakePlan(seed, store_, mutant_);
    if (plan.remains) LeaveRemains(plan);
    std::memset(static_cast<void*>(board_), 0, sizeof(Board));
    if (plan.moved && server_ != nullptr) server_->Command({"SAVE"});
    std::vector<pid_t> ranks = StartRanks(plan);
    Strike(plan, ranks);
    for (const pid_t pid : ranks) {
      int status = 0;
      ::waitpid(pid, &status, 0);
      if (status != 0) ++tally->deaths;
    }
    Judge(plan, tally);
    std::error_code ignored;
    fs::remove_all(Private(), ignored);
    fs::remove_all(Private() + "-moved", ignored);
    // A long list of keys would make the server's own work the longest part.
    if (server_ != nullptr && seed % 64 == 0) server_->Command({"FLUSHALL"});
  }

 private:
  std::string Private() const {
    return folder_.path() + Format("/diapason-{}", static_cast<unsigned>(::geteuid()));
  }

  Result<std::unique_ptr<agree::CellStore>> Open(const Plan& plan) const {
    agree::StoreOptions options;
    options.job = Format("run-{}", plan.seed);
    options.limit = std::chrono::milliseconds(120000);
    if (store_ == "shm") return OpenShmStore(options, {folder_.path(), uint64_t{4} << 20});
    options.where = store_ == "file"  ? "file:" + folder_.path()
                    : store_ == "tcp" ? cells_->Url()
                                      : server_->Url();
    options.secret = cell_server::kTestSecret;  // for tcp
    return OpenStore(options);
  }

  std::vector<pid_t> StartRanks(const Plan& plan) {
    std::vector<pid_t> ranks;
    for (int rank = 0; rank < plan.ranks; ++rank) {
      const pid_t pid = ::fork();
      if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        BeRank(
            plan, rank, [&] { return Open(plan); }, mutant_, board_);
      }
      ranks.push_back(pid);
    }
    return ranks;
  }

  // The same job a moment ago, of which nobody is left.
  void LeaveRemains(const Plan& plan) {
    std::memset(static_cast<void*>(board_), 0, sizeof(Board));
    Plan before = plan;
    before.join_limit_ms = 1000;
    before.delay_share = 0.2;
    const std::vector<pid_t> ranks = StartRanks(before);
    Dice dice(plan.seed, 9);
    std::this_thread::sleep_for(std::chrono::microseconds(dice.Below(12000)));
    for (const pid_t pid : ranks) ::kill(pid, SIGKILL);
    for (const pid_t pid : ranks) ::waitpid(pid, nullptr, 0);
  }

  void Strike(const Plan& plan, const std::vector<pid_t>& ranks) {
    Dice dice(plan.seed, 11);
    std::this_thread::sleep_for(std::chrono::microseconds(plan.strike_us));
    if (plan.killed >= 0) ::kill(ranks[static_cast<size_t>(plan.killed)], SIGKILL);
    for (int i = 0; plan.cut && i < 3; ++i) {
      if (cells_ != nullptr) cells_->Restart();
      if (server_ != nullptr)
        server_->Command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    }
    if (plan.emptied) {
      if (cells_ != nullptr) {
        cells_->Kill();
        fs::remove(cells_->file());
        cells_->Start();
      } else if (server_ != nullptr) {
        server_->Command({"FLUSHALL"});
      } else if (dice.Chance(0.5)) {
        std::error_code ignored;
        fs::remove_all(Private(), ignored);
      } else {
        RemoveSlowly(Private(), &dice);
      }
    }
    if (plan.moved) {
      std::error_code ignored;
      if (cells_ != nullptr) {
        cells_->Restart();  // with its file: no rank may notice
      } else if (server_ != nullptr) {
        server_->Restart();
      } else {
        fs::rename(Private(), Private() + "-moved", ignored);
      }
    }
  }

  // As `rm -r` does where every file takes its time: in the order in which they are listed, a
  // folder's content before the folder.
  static void RemoveSlowly(const fs::path& path, Dice* dice) {
    std::error_code ignored;
    std::vector<fs::path> content;
    for (fs::directory_iterator at(path, ignored), end; !ignored && at != end;
         at.increment(ignored)) {
      content.push_back(at->path());
    }
    for (const fs::path& inner : content) {
      if (fs::is_directory(inner, ignored)) {
        RemoveSlowly(inner, dice);
      } else {
        fs::remove(inner, ignored);
        std::this_thread::sleep_for(std::chrono::microseconds(dice->Below(400)));
      }
    }
    fs::remove(path, ignored);
  }

  void Judge(const Plan& plan, Tally* tally) const {
    ++tally->runs;
    bool split = false;
    uint64_t learned = 0;
    bool all_through = true;
    for (int round = 0; round < plan.rounds; ++round) {
      for (int context = 0; context < plan.contexts; ++context) {
        const uint64_t incumbent = Encode(IncumbentOf(plan, context));
        for (int index = 0; index < kMostCalls; ++index) {
          uint64_t seen = 0;
          for (int rank = 0; rank < plan.ranks; ++rank) {
            const uint64_t used = board_->used[round][rank][context][index];
            if (used == 0) continue;
            ++tally->calls;
            if (used != incumbent) ++learned;
            if (seen != 0 && seen != used && !split) {
              split = true;
              if (mutant_ == Mutant::kNone) {
                std::printf(
                    "seed %llu: round %d context %d call %d: rank %d used %llx, another "
                    "one %llx\n",
                    static_cast<unsigned long long>(plan.seed), round, context, index, rank,
                    static_cast<unsigned long long>(used), static_cast<unsigned long long>(seen));
              }
            }
            seen = used;
          }
        }
      }
      for (int rank = 0; rank < plan.ranks; ++rank) {
        if (board_->together[round][rank] == 2) ++tally->together;
        all_through = all_through && board_->together[round][rank] == 2;
      }
    }
    bool any_error = false;
    for (int rank = 0; rank < plan.ranks; ++rank) {
      const Fate fate = board_->fate[rank];
      all_through = all_through && fate == Fate::kDone;
      if (fate != Fate::kError) continue;
      any_error = true;
      ++tally->errors;
    }
    tally->learned += learned;
    // A store that went away is a reason for errors; whatever happens to other ranks is none. Ranks
    // hold on to shared memory and to a folder that was moved.
    const bool may_fail = (plan.emptied && store_ != "shm") || (plan.moved && store_ == "redis");
    const bool imperfect = (plan.Calm() && !all_through) || (any_error && !may_fail);
    if (plan.Calm()) {
      ++tally->calm;
      const bool eager = plan.window == 1 && plan.propose_share == 1 && plan.simulate_share == 0;
      tally->eager += eager ? 1 : 0;
      tally->taught += eager && learned > 0 ? 1 : 0;
    }
    if (imperfect && mutant_ == Mutant::kNone) {
      std::printf("seed %llu: not as it should be:\n", static_cast<unsigned long long>(plan.seed));
      for (int rank = 0; rank < plan.ranks; ++rank) {
        std::printf("  rank %d of %d: fate %u, together %u, call %u: %s\n", rank, plan.ranks,
                    static_cast<unsigned>(board_->fate[rank].load()),
                    board_->together[0][rank].load(), board_->progress[rank].load(),
                    board_->error[rank]);
      }
    }
    tally->split += split ? 1 : 0;
    tally->imperfect += imperfect ? 1 : 0;
    if ((split || imperfect) && tally->first_bad == 0) tally->first_bad = plan.seed;
  }

  const std::string store_;
  const Mutant mutant_;
  TemporaryFolder folder_{"/dev/shm"};
  std::unique_ptr<agree::RedisServer> server_;
  std::unique_ptr<cell_server::ServerProcess> cells_;
  Board* board_ = nullptr;
};

}  // namespace

std::unique_ptr<Ground> MakeGround(const std::string& store, Mutant mutant) {
  auto ground = std::make_unique<StoreGround>(store, mutant);
  if (!ground->Prepare()) return nullptr;
  return ground;
}

}  // namespace diapason::attack
