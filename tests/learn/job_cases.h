#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "played_library.h"

// The cases of played_job.cc: jobs whose ranks learn, and what must come out.
namespace played_job {

using played::Choice;
using played::Communicator;
using Way = Communicator::Way;

inline constexpr int kMostRanks = 8;
inline constexpr int kSystemError = 2;
inline constexpr int kWrongAlgorithm = 99;
inline constexpr size_t kMostCalls = 65000;
// A context is settled when every channel count is decided, ties included. Ranks run up to 200
// calls apart here, so that results are late and this takes some thousand calls; a job that learns
// ends soon after.
inline constexpr uint32_t kMostToLearn = 60000;
inline constexpr size_t kSizes[] = {8u << 10, 32u << 10, 512u << 10};
inline constexpr size_t kSizeCount = 3;

// What the ranks did, for all to see.
struct Board {
  std::atomic<uint32_t> ran[kMostRanks][kMostCalls];  // 0: nothing (yet)
  std::atomic<uint32_t> calls[kMostRanks];
  std::atomic<int> errors[kMostRanks];
  std::atomic<int> init[kMostRanks];
  std::atomic<uint32_t> settled;   // sizes rank 0 has settled
  std::atomic<uint32_t> stop_at;   // all ranks make so many calls
  std::atomic<uint32_t> explored;  // calls that were not the library's choice
  std::atomic<int> warnings;
};
// Shared by the processes of a case.
extern Board* g_board;
// Of this run of the program; removed at its end.
extern std::string g_folder;

struct Case {
  const char* name;
  int ranks = 4;
  uint32_t least = 0;  // calls made at least
  uint32_t most = 12000;
  bool must_learn = true;
  bool tries_ll = true;
  std::function<void(int rank)> before = [](int) {};
  // One step of the program; `n` counts them. Returns false on the plugin's error.
  std::function<bool(Communicator*, int rank, uint32_t n)> step;
  std::function<void(int rank, uint32_t n)> meanwhile = [](int, uint32_t) {};
  std::function<void(Communicator::Options*)> options = [](Communicator::Options*) {};
  bool profiler_everywhere = true;
  bool profiler_on_any = true;
  bool must_apply = false;  // every call runs the policy's only row: tree/simple on one channel
  bool errors_allowed = false;
  bool must_fail = false;     // every rank gets ncclSystemError
  bool must_not_try = false;  // nothing but the library's own choice ever runs
  bool must_try = false;      // every size runs in several ways
  bool only_when_named = false;
  uint32_t differs_from = kMostCalls;  // calls from here on are not compared
  bool killed = false;
};

std::vector<Case> Cases();

// Steps for cases: each makes calls, and notes what ran. False on the plugin's error.
bool Note(int rank, uint32_t call, const Choice& choice, int error);
bool PlainStep(Communicator* communicator, int rank, uint32_t n);
void Pause(long microseconds);

}  // namespace played_job
