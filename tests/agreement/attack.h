#pragma once

// Ranks that agree while everything is done to stop them. One run is one job: processes that join
// and walk through the calls of a few contexts. What each has used for each call is in memory that
// survives them, and is compared afterwards.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "agree/store.h"
#include "base/random.h"
#include "diapason/config.h"

namespace diapason::attack {

constexpr int kMostRanks = 6;
constexpr int kMostContexts = 3;
constexpr int kMostCalls = 256;  // of one context
constexpr int kRounds = 2;       // communicators with one id, one after the other

enum class Mutant { kNone, kHold, kOff, kError };

// Random numbers in a row.
class Dice {
 public:
  Dice(uint64_t seed, uint64_t stream) : random_(seed, stream) {}
  uint64_t Below(uint64_t limit) { return random_.Bits(next_++) % limit; }
  bool Chance(double share) { return random_.Uniform(next_++) < share; }

 private:
  CounterRandom random_;
  uint64_t next_ = 0;
};

struct Plan {
  uint64_t seed = 0;
  int ranks = 2;
  int contexts = 1;
  int calls = 0;  // of all contexts
  int rounds = 1;
  uint64_t opening_calls = 1;
  uint64_t hold_calls = 1;
  uint64_t window = 0;  // how far a rank may run ahead of another; 0: as it likes
  double propose_share = 1;
  double simulate_share = 0;
  double delay_share = 0;
  int join_limit_ms = 0;

  // Attacks; each may be there or not.
  int killed = -1;       // this rank is killed from outside
  int dies_inside = -1;  // this one kills itself in the middle of a proposal
  int late = -1;         // this one comes late
  int different = -1;    // this one is not like the others
  bool emptied = false;  // the store is emptied
  bool moved = false;    // or renamed away, or its server restarted
  bool cut = false;      // connections are cut (Redis)
  bool remains = false;  // a former run with the same names was killed
  int strike_us = 0;     // when

  bool Calm() const {
    return killed < 0 && dies_inside < 0 && late < 0 && different < 0 && !emptied && !moved;
  }
};

enum class Fate : uint32_t { kNothing, kWalking, kDone, kError };

// In memory that all processes of a run share.
struct Board {
  std::atomic<uint32_t> progress[kMostRanks];
  std::atomic<Fate> fate[kMostRanks];
  std::atomic<uint32_t> together[kRounds][kMostRanks];
  char error[kMostRanks][256];
  // What a rank has used for a call; 0: it did not get there.
  std::atomic<uint64_t> used[kRounds][kMostRanks][kMostContexts][kMostCalls];
};

Config IncumbentOf(const Plan& plan, int context);
uint64_t Encode(const Config& config);

using Opener = std::function<Result<std::unique_ptr<agree::CellStore>>()>;

// What one rank does, in a process of its own, which ends here.
[[noreturn]] void BeRank(const Plan& plan, int rank, const Opener& open, Mutant mutant,
                         Board* board);

// A store with which something may happen before, during and after every call.
std::unique_ptr<agree::CellStore> WithChaos(std::unique_ptr<agree::CellStore> store,
                                            const Plan& plan, int rank, Mutant mutant);

// What came of many runs.
struct Tally {
  uint64_t runs = 0;
  uint64_t calm = 0;
  uint64_t split = 0;      // runs in which ranks used different configurations
  uint64_t imperfect = 0;  // runs that should have gone through, and did not
  uint64_t together = 0;
  uint64_t errors = 0;  // ranks that ended with one
  uint64_t deaths = 0;
  uint64_t calls = 0;
  uint64_t learned = 0;    // calls with something else than the incumbent
  uint64_t eager = 0;      // runs without attacks in which there was every reason to learn
  uint64_t taught = 0;     // of these, those that did
  uint64_t first_bad = 0;  // a seed
};

// Where runs take place, one after the other.
class Ground {
 public:
  virtual ~Ground() = default;
  virtual void Run(uint64_t seed, Tally* tally) = 0;
};
// Null: there is no such store here.
std::unique_ptr<Ground> MakeGround(const std::string& store, Mutant mutant);

}  // namespace diapason::attack
