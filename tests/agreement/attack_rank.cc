#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "agree/epochs.h"
#include "agree/join.h"
#include "attack.h"
#include "base/text.h"

namespace diapason::attack {

Config IncumbentOf(const Plan& plan, int context) {
  Config config;
  config.algorithm = static_cast<int>(CounterRandom(plan.seed, 7).Bits(0) % 3) + context;
  return config;
}

uint64_t Encode(const Config& config) {
  return (uint64_t{1} << 63) | (static_cast<uint64_t>(config.algorithm + 1) << 32) |
         (static_cast<uint64_t>(config.protocol + 1) << 16) |
         static_cast<uint64_t>(config.channels);
}

namespace {

Schedule RandomSchedule(Dice* dice) {
  Schedule schedule;
  const auto config = [dice] {
    Config any;
    any.algorithm = static_cast<int>(dice->Below(6));
    any.protocol = static_cast<int>(dice->Below(3));
    any.channels = static_cast<int>(dice->Below(32));
    return any;
  };
  schedule.incumbent = config();
  for (uint64_t i = 1 + dice->Below(4); i > 0; --i) {
    schedule.segments.push_back({config(), 1 + dice->Below(12), dice->Chance(0.8)});
  }
  return schedule;
}

// Proposes from a thread of its own, as a leader does that must not keep its callers waiting.
class Proposer {
 public:
  explicit Proposer(agree::CellStore* store) : store_(store), thread_([this] { Run(); }) {}
  ~Proposer() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  struct Job {
    std::string prefix;
    uint32_t epoch = 0;
    Schedule schedule;
    std::chrono::microseconds delay{0};
  };
  void Add(Job job) {
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    wake_.notify_all();
  }

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
      if (stop_) return;
      const Job job = std::move(jobs_.front());
      jobs_.erase(jobs_.begin());
      lock.unlock();
      std::this_thread::sleep_for(job.delay);
      // An error is found by the rank itself, too.
      static_cast<void>(agree::EpochLog::Propose(store_, job.prefix, job.epoch, job.schedule).ok());
      lock.lock();
    }
  }

  agree::CellStore* store_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Job> jobs_;
  bool stop_ = false;
  std::thread thread_;
};

class Rank {
 public:
  Rank(const Plan& plan, int rank, Mutant mutant, Board* board)
      : plan_(plan),
        rank_(rank),
        mutant_(mutant),
        board_(board),
        dice_(plan.seed, 100 + static_cast<uint64_t>(rank)) {}

  void Run(const Opener& open) {
    board_->fate[rank_] = Fate::kWalking;
    if (plan_.late == rank_) {
      std::this_thread::sleep_for(std::chrono::microseconds(
          dice_.Below(static_cast<uint64_t>(plan_.join_limit_ms) * 2000)));
    }
    auto store = open();
    if (!store.ok()) return Fail(store.status());
    store_ = WithChaos(std::move(store).value(), plan_, rank_, mutant_);
    for (int round = 0; round < plan_.rounds; ++round) {
      if (!Round(round)) return;
    }
    board_->fate[rank_] = Fate::kDone;
    // The last one out takes the store along: nobody is late for it in a run without attacks.
    if (plan_.Calm()) WaitForAll();
  }

 private:
  void Fail(const Status& status) {
    std::strncpy(board_->error[rank_], status.message().c_str(), sizeof(board_->error[0]) - 1);
    board_->fate[rank_] = Fate::kError;
  }

  bool Round(int round) {
    agree::JoinRequest request;
    request.comm_id = 0xabc;
    request.rank = rank_;
    request.ranks = plan_.ranks;
    request.alike = plan_.different == rank_ ? "build=2 hold=9" : "build=1 hold=9";
    request.offer = Format("{}", plan_.seed);
    request.limit = std::chrono::milliseconds(plan_.join_limit_ms);
    // Ranks may differ in when they lose their patience.
    if (plan_.late >= 0 && dice_.Chance(0.5)) request.limit /= 1 + dice_.Below(8);
    const auto joined = agree::Join(store_.get(), request);
    if (!joined.ok()) {
      Fail(joined.status());
      return false;
    }
    board_->together[round][rank_] = joined.value().together ? 2 : 1;
    if (joined.value().together) return Walk(round, joined.value().prefix);
    // Off: everybody runs what he would have run without us, which is the incumbent here.
    Dice order(plan_.seed, 5);
    std::vector<uint64_t> next(static_cast<size_t>(plan_.contexts));
    for (int call = 0; call < plan_.calls; ++call) {
      const auto context = order.Below(static_cast<uint64_t>(plan_.contexts));
      Use(round, static_cast<int>(context), next[context]++,
          IncumbentOf(plan_, static_cast<int>(context)));
    }
    return true;
  }

  void Use(int round, int context, uint64_t index, const Config& config) {
    if (index < kMostCalls) board_->used[round][rank_][context][index] = Encode(config);
  }

  bool Walk(int round, const std::string& prefix) {
    std::vector<agree::EpochLog> logs;
    std::vector<agree::KnownCells> known(static_cast<size_t>(plan_.contexts));
    std::vector<uint32_t> epochs(static_cast<size_t>(plan_.contexts));
    for (int context = 0; context < plan_.contexts; ++context) {
      agree::EpochLog::Options options;
      options.prefix = prefix + Format("ctx{}.", context);
      options.incumbent = IncumbentOf(plan_, context);
      options.opening_calls = plan_.opening_calls;
      options.hold_calls = plan_.hold_calls;
      options.known = &known[static_cast<size_t>(context)];
      logs.emplace_back(store_.get(), options);
    }
    std::optional<Proposer> proposer;
    if (rank_ == 0 && dice_.Chance(0.5)) proposer.emplace(store_.get());
    Dice order(plan_.seed, 5);
    std::vector<uint64_t> next(static_cast<size_t>(plan_.contexts));
    for (int call = 0; call < plan_.calls; ++call) {
      const auto context = order.Below(static_cast<uint64_t>(plan_.contexts));
      const uint64_t index = next[context]++;
      agree::EpochLog& log = logs[context];
      if (dice_.Chance(0.2)) {
        ReadAhead(prefix + Format("ctx{}.", static_cast<int>(context)), log.newest().number + 1,
                  &known[context]);
      }
      // A group that is only simulated asks, and nothing comes of it.
      if (dice_.Chance(plan_.simulate_share)) {
        static_cast<void>(log.At(index + dice_.Below(40)).ok());
      }
      Result<agree::EpochLog::Span> span = log.At(index);
      if (!span.ok() && mutant_ == Mutant::kError) {
        span = agree::EpochLog::Span{};
        span.value().config = IncumbentOf(plan_, static_cast<int>(context));
      }
      if (!span.ok()) {
        Fail(span.status());
        return false;
      }
      Use(round, static_cast<int>(context), index, span.value().config);
      if (dice_.Chance(0.1)) log.Forget(index);
      if (span.value().epoch >= epochs[context]) {
        epochs[context] = span.value().epoch + 1;
        // Sometimes several epochs ahead.
        const auto ahead = static_cast<uint32_t>(dice_.Chance(0.2) ? dice_.Below(4) : 0);
        for (uint32_t i = 0; i <= ahead; ++i) {
          ProposeNext(prefix + Format("ctx{}.", static_cast<int>(context)),
                      span.value().epoch + 1 + i, proposer ? &*proposer : nullptr);
        }
      }
      if (dice_.Chance(plan_.delay_share / 4)) {
        std::this_thread::sleep_for(std::chrono::microseconds(dice_.Below(300)));
      }
      board_->progress[rank_] = static_cast<uint32_t>(round * plan_.calls + call + 1);
      KeepWithOthers(static_cast<uint32_t>(round * plan_.calls + call + 1));
    }
    return true;
  }

  // What a background thread does: cells that stand are kept, empty ones and errors are not.
  void ReadAhead(const std::string& prefix, uint32_t next, agree::KnownCells* known) {
    for (uint32_t epoch = std::max(next, 2u); epoch < next + 4; ++epoch) {
      const auto cell = store_->Read(agree::EpochLog::CellKey(prefix, epoch));
      if (!cell.ok() || !cell.value()) return;
      known->Put(epoch, *cell.value());
    }
  }

  void ProposeNext(const std::string& prefix, uint32_t epoch, Proposer* proposer) {
    // Rank 0 leads; that another one does, too, must do no harm.
    if (epoch < 2 || !dice_.Chance(rank_ == 0 ? plan_.propose_share : 0.02)) return;
    Proposer::Job job{prefix, epoch, RandomSchedule(&dice_), {}};
    if (dice_.Chance(0.2)) job.delay = std::chrono::microseconds(dice_.Below(2000));
    if (proposer != nullptr) return proposer->Add(std::move(job));
    static_cast<void>(agree::EpochLog::Propose(store_.get(), prefix, epoch, job.schedule).ok());
  }

  // Collectives keep ranks together. Not longer than some milliseconds: somebody may be dead.
  void KeepWithOthers(uint32_t mine) {
    if (plan_.window == 0 || alone_) return;
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(plan_.Calm() ? 60000 : 20);
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      while (board_->progress[rank] + plan_.window < mine) {
        const Fate fate = board_->fate[rank];
        if (fate == Fate::kError || fate == Fate::kDone) break;
        if (std::chrono::steady_clock::now() > end) {
          alone_ = true;
          return;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    }
  }

  void WaitForAll() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(300);
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      while (board_->fate[rank] != Fate::kDone && std::chrono::steady_clock::now() < end) {
        if (board_->fate[rank] == Fate::kError) return;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    }
  }

  const Plan& plan_;
  const int rank_;
  const Mutant mutant_;
  Board* board_;
  Dice dice_;
  std::unique_ptr<agree::CellStore> store_;
  bool alone_ = false;
};

}  // namespace

void BeRank(const Plan& plan, int rank, const Opener& open, Mutant mutant, Board* board) {
  {
    Rank self(plan, rank, mutant, board);
    self.Run(open);
  }
  ::_exit(0);
}

}  // namespace diapason::attack
