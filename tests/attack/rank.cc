// One rank of an attacked job: loads the built plugin as the library does, makes calls whose kinds
// and sizes are drawn from a seed that all ranks share, and writes what it ran for each onto the
// board. tests/attack/job.py starts the ranks and compares.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <vector>

#include "board.h"
#include "learn/played_library.h"
#include "options.h"

namespace attack {
namespace {

using played::Choice;
using Way = played::Communicator::Way;

Options g_options;
Board* g_board = nullptr;
Rank* g_me = nullptr;
bool g_failing = false;  // allocations of the next question are to fail
void (*g_arm)(long first, long count) = nullptr;
long (*g_disarm)() = nullptr;
void (*g_fail_others)(long first, long count) = nullptr;
uint64_t g_asked_at = 0;

uint64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

void Pause(long microseconds) {
  const timespec pause{microseconds / 1000000, microseconds % 1000000 * 1000};
  nanosleep(&pause, nullptr);
}

void Longest(std::atomic<uint64_t>* longest, uint64_t since) {
  longest->store(std::max(longest->load(), NowNs() - since));
}

void Hear(bool warning, const char* text) {
  if (warning) g_me->warnings.fetch_add(1);
  std::fprintf(stderr, "[%d%s] %s\n", g_options.rank, warning ? " warning" : "", text);
}

void Arm() {
  if (g_arm != nullptr) g_arm(g_options.fail_first, g_options.fail_count);
}

void Disarm() {
  if (g_disarm != nullptr) g_me->allocations.store(static_cast<uint64_t>(g_disarm()));
}

void BeforeQuestion() {
  g_asked_at = NowNs();
  if (g_failing) Arm();
}

void AfterQuestion() {
  if (g_failing) Disarm();
  Longest(&g_me->question_ns, g_asked_at);
}

// The same numbers on every rank: what `what` of call n is.
uint64_t Draw(uint64_t n, uint64_t what) {
  uint64_t x = (g_options.seed * 0x9e3779b97f4a7c15u) ^ (n * 0xbf58476d1ce4e5b9u) ^
               (what * 0x94d049bb133111ebu);
  x ^= x >> 31;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  return x ^ (x >> 32);
}

bool Happens(uint64_t n, uint64_t what, uint32_t thousandths) {
  return Draw(n, what) % 1000 < thousandths;
}

enum What : uint64_t {
  kSize = 1,
  kCollective,
  kTail,
  kIsCaptured,
  kIsGroup,
  kIsNonBlocking,
  kIsLate,
  kIsSimulated,
  kIsSimulatedThenSent,
  kIsSent,
  kIsPair,
  kIsSelected,
  kSelection,
};

constexpr uint32_t kBands = 18;  // of sizes, from 4 KiB on

played::Call CallNumber(uint64_t n) {
  const uint32_t first = g_options.fresh == 0 ? 0 : static_cast<uint32_t>(n / g_options.fresh);
  const uint64_t step = g_options.fresh == 0 ? 3 : 1;
  const uint64_t band = (first + Draw(n, kSize) % g_options.sizes * step) % kBands;
  played::Call call;
  if (g_options.collectives) {
    call.collective = static_cast<int>(Draw(n, kCollective) % played::kCollectives);
  }
  const uint64_t grain = 4 * static_cast<uint64_t>(g_options.ranks);
  call.bytes = (size_t{4096} << band) - Draw(n, kTail) % 3 * grain;
  call.bytes -= call.bytes % grain;
  if (Happens(n, kIsSelected, g_options.selected)) {
    const bool has_trees = call.collective == played::kAllReduce;
    call.selection = has_trees ? static_cast<int>(Draw(n, kSelection) % 2) : 1;
  }
  return call;
}

uint32_t Pack(const std::vector<Choice>& choices) {
  uint32_t word = 0;
  for (const Choice& one : choices) {
    word = word * 7919 + static_cast<uint32_t>(one.algorithm) * 10000 +
           static_cast<uint32_t>(one.protocol) * 1000 + static_cast<uint32_t>(one.channels);
  }
  return 1 + word % 0x7fffffffu;
}

bool Fail(int error, uint32_t n, bool in_init) {
  g_me->error.store(error);
  g_me->error_at.store(n);
  g_me->error_in_init.store(in_init ? 1 : 0);
  g_me->state.store(kFailed);
  return false;
}

bool OtherIsLost(const Rank& other) {
  const uint32_t state = other.state.load();
  return state == kFailed || state == kStranded || (other.gone.load() != 0 && state != kFinished);
}

// Waits until nobody is behind; false where somebody will never come.
template <class Behind>
bool WaitForOthers(const Behind& behind) {
  for (int i = 0; i < g_options.ranks; ++i) {
    const Rank& other = g_board->rank[i];
    while (behind(other) && other.state.load() != kFinished) {
      if (OtherIsLost(other) && behind(other)) {
        g_me->state.store(kStranded);
        return false;
      }
      Pause(50);
    }
  }
  return true;
}

void BreakOnPurpose(uint32_t n, std::vector<Choice>* ran, int* error) {
  if (g_options.broken.empty() || n != g_options.calls / 2) return;
  if (g_options.broken == "flip") ran->front().algorithm ^= 1;
  if (g_options.broken == "error") *error = 3;
  if (g_options.broken == "stdout") dprintf(STDOUT_FILENO, "a line\n");
  if (g_options.broken == "crash") raise(SIGSEGV);
  if (g_options.broken == "hang") pause();
  if (g_options.broken == "slow") g_me->question_ns.store(3600ull * 1000000000);
}

// What calls are made on. The second is there where groups go over two communicators.
struct Communicators {
  std::optional<played::Communicator> first;
  std::optional<played::Communicator> second;
};

// What this rank does on its own before the call.
bool MakeAside(Communicators* both, uint32_t n) {
  played::Communicator* communicator = &*both->first;
  int error = 0;
  if (both->second && Happens(n, kIsSimulated, g_options.simulated / 2)) {
    played::Communicator::Together(&*both->second, communicator, CallNumber(n), true, &error);
  }
  if (error == 0 && Happens(n, kIsSimulated, g_options.simulated)) {
    communicator->Make(CallNumber(n + 1), Way::kSimulated, &error);
  }
  if (error == 0 && Happens(n, kIsSimulatedThenSent, g_options.simulated_then_sent)) {
    communicator->Make(CallNumber(n), Way::kSimulated, &error);
    if (error == 0) communicator->PointToPoint();
  }
  if (error == 0 && Happens(n, kIsSent, g_options.sent)) communicator->PointToPoint();
  return error == 0 || Fail(error, n, false);
}

std::vector<Choice> MakeCall(Communicators* both, uint32_t n, int* error) {
  played::Communicator* communicator = &*both->first;
  const played::Call call = CallNumber(n);
  if (both->second && Happens(n, kIsPair, g_options.pairs)) {
    played::Communicator* second = &*both->second;
    if (n % 2 == 0) std::swap(communicator, second);
    return played::Communicator::Together(communicator, second, call, false, error);
  }
  if (Happens(n, kIsGroup, g_options.groups)) {
    return communicator->Group({call.bytes, call.bytes, call.bytes * 4}, error);
  }
  if (Happens(n, kIsCaptured, g_options.captured)) {
    const Choice choice = communicator->Make(call, Way::kCaptured, error);
    // Some ranks are told of the graph's first run before the next call, some never.
    const bool replayed = g_options.rank % 2 == 0 && call.collective == played::kAllReduce;
    if (*error == 0 && replayed) communicator->Replay(call.bytes, choice);
    return {choice};
  }
  const Way way = Happens(n, kIsNonBlocking, g_options.nonblocking) ? Way::kNonBlocking
                  : Happens(n, kIsLate, g_options.late)             ? Way::kLate
                                                                    : Way::kEager;
  return {communicator->Make(call, way, error)};
}

bool MakeCallNumber(Communicators* communicators, uint32_t n) {
  if (g_options.mask_at == static_cast<int64_t>(n)) played::ChangeMask(g_options.mask);
  if (!MakeAside(communicators, n)) return false;
  const bool failing = g_options.fail_call == static_cast<int64_t>(n);
  if (failing && g_fail_others != nullptr && g_options.fail_others) {
    g_fail_others(g_options.fail_first, g_options.fail_count);
  }
  g_failing = failing && !g_options.fail_others;
  int error = 0;
  std::vector<Choice> ran = MakeCall(communicators, n, &error);
  g_failing = false;
  BreakOnPurpose(n, &ran, &error);
  if (error != 0) return Fail(error, n, false);
  g_me->ran[n].store(Pack(ran));
  g_me->done.store(n + 1);
  if (!WaitForOthers([n](const Rank& other) { return n >= other.done.load() + g_options.lag; })) {
    return false;
  }
  if (g_options.pause > 0) Pause(g_options.pause);
  return true;
}

// One communicator: its creation, the calls from `first` to `end`, its end.
bool RunCommunicator(const played::Plugin& plugin, uint32_t number, uint32_t first, uint32_t end) {
  const played::LabPhysics physics;
  played::Communicator::Options options;
  options.id = g_options.id + number;
  options.ranks = g_options.ranks;
  options.rank = g_options.rank;
  options.nodes = g_options.nodes;
  options.profiler = g_options.profiler;
  options.channels = 4;
  options.asks_twice = g_options.twice;
  options.asks_ahead = g_options.ahead;
  const bool failing = number == 0 && g_options.fail_call < 0 && g_options.fail_first >= 0;
  Communicators communicators;  // nothing of ours is allocated
  const uint64_t begun = NowNs();
  if (failing) Arm();
  communicators.first.emplace(plugin, physics, options);
  if (failing) Disarm();
  Longest(&g_me->init_ns, begun);
  int status = communicators.first->status;
  if (status == 0 && g_options.pairs > 0) {
    options.id += 1000000;
    communicators.second.emplace(plugin, physics, options);
    status = communicators.second->status;
  }
  bool fine = status == 0 || Fail(status, first, true);
  if (fine) {
    g_me->created.store(number + 1);
    // Creating a communicator is a barrier.
    fine = WaitForOthers([number](const Rank& other) { return other.created.load() <= number; });
  }
  for (uint32_t n = first; fine && n < end && n < g_board->header.stop_at.load(); ++n) {
    fine = MakeCallNumber(&communicators, n);
  }
  while (fine && g_board->header.hold.load() != 0) Pause(1000);
  const uint64_t ending = NowNs();
  communicators.second.reset();
  communicators.first.reset();
  Longest(&g_me->finalize_ns, ending);
  return fine;
}

int Run() {
  played::ListenToLog(Hear);
  played::WatchQuestions({BeforeQuestion, AfterQuestion});
  played::PlayVersion(g_options.version);
  const played::Plugin plugin = played::LoadPlugin(g_options.plugin);
  const uint32_t each = g_options.calls / std::max(1u, g_options.communicators);
  bool fine = true;
  for (uint32_t number = 0; fine && number < g_options.communicators; ++number) {
    fine = RunCommunicator(plugin, number, number * each, (number + 1) * each);
  }
  if (fine) g_me->state.store(kFinished);
  return 0;
}

Board* OpenBoard(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* board = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return board == MAP_FAILED ? nullptr : static_cast<Board*>(board);
}

}  // namespace
}  // namespace attack

int main(int argc, char** argv) {
  using namespace attack;
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // no rank outlives its conductor
  g_options = ReadOptions(argc, argv);
  g_board = OpenBoard(g_options.board);
  if (g_board == nullptr || g_board->header.magic != kMagic || g_options.calls > kMostCalls ||
      g_options.rank < 0 || g_options.rank >= static_cast<int>(kMostRanks)) {
    std::fprintf(stderr, "attack_rank: no board, or not this one\n");
    return 64;
  }
  g_me = &g_board->rank[g_options.rank];
  g_arm = reinterpret_cast<void (*)(long, long)>(dlsym(RTLD_DEFAULT, "attack_fail_from"));
  g_fail_others = reinterpret_cast<void (*)(long, long)>(dlsym(RTLD_DEFAULT, "attack_fail_others"));
  g_disarm = reinterpret_cast<long (*)()>(dlsym(RTLD_DEFAULT, "attack_fail_end"));
  return Run();
}
