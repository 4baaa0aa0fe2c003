// A job on a library that is played, in simulated time: a program to tune, profile and start in
// tests, where there is no GPU.
//
//     played_program [options] KIND
//
// It starts its ranks as processes, each of which loads the built plugin as NCCL would (both
// halves) and makes the calls of a program of this kind. Compute and collectives take simulated
// time, which depends on the configurations that were chosen, alone and beside compute: a
// collective is faster with more channels, and compute beside it slower (cluster.h). The plugin's
// stamps are of simulated time too (virtual_clock.h). Nothing sleeps unless it is asked to: a
// job of simulated minutes takes less than a second.
//
// Kinds (kinds.cc): decode (32 allreduces of 32 KiB, all waited for), alike (the same, and nothing
// else that would show an iteration's end), ddp (buckets beside the backward pass), fsdp (gathers
// ahead, scatters behind), two (tensor and data parallel groups), comes-and-goes (communicators
// that live for four iterations), tenth (every tenth iteration is longer), accumulate (four parts
// with one end), evaluate (evaluations in between), graph (calls captured into a graph, and one
// beside it), replays (a graph with all calls, whose replays the library does not report), groups
// (groups and broadcasts on 2.29), none (no iterations at all).
//
// Options:
//   --plugin FILE       the plugin; else NCCL_TUNER_PLUGIN, and the profiler half only if
//                       NCCL_PROFILER_PLUGIN is set
//   --ranks N           4; even
//   --iterations N      40
//   --seed N            of everything that varies: 1
//   --noise X           0: nothing varies; 1
//   --slow-rank X       the last rank computes X times as slowly: 1
//   --steps             call diapason_step() after every iteration
//   --real-time         iterations take as long in real time, and stamps are of real time
//   --stop RANK:N       this rank ends after N iterations, without closing its journal
//   --pace N            sleep N real microseconds after every call: learning has a thread that
//   works in
//                       real time, and a job without pauses is over before it has proposed much; 0
//   --print-every N     rank 0 prints a line with loss and time every N iterations
//   --truth FILE        write to FILE.RANK, as JSON, what really happened (truth.h)
//
// Exit status: 0; 1 if the plugin failed a call or a rank ended otherwise; 2 for a wrong command
// line. The environment is the plugin's: DIAPASON_MODE, DIAPASON_JOURNAL, DIAPASON_STORE, ...
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "kinds.h"
#include "virtual_clock.h"

namespace {

constexpr int kMostRanks = 64;
constexpr uint32_t kFarthestAhead = 200;  // calls: real ones would wait for each other
constexpr int kLongestWaits = 5000;       // of 100 us each
constexpr unsigned kLongestSeconds = 600;
constexpr off_t kSomeBytes = 20000;

struct Board {
  std::atomic<uint32_t> calls[kMostRanks];
  std::atomic<bool> over[kMostRanks];
};
Board* g_board = nullptr;
int g_ranks = 0;
int g_rank = 0;
long g_pace = 0;  // nanoseconds

void Pause(long nanoseconds) {
  const timespec pause{0, nanoseconds};
  nanosleep(&pause, nullptr);
}

// Nobody runs far ahead of the others.
void MadeCall(uint32_t calls) {
  g_board->calls[g_rank].store(calls);
  if (g_pace > 0) Pause(g_pace);
  for (int other = 0; other < g_ranks; ++other) {
    for (int i = 0; i < kLongestWaits; ++i) {
      if (calls < g_board->calls[other].load() + kFarthestAhead) break;
      if (g_board->over[other].load()) break;
      Pause(100000);
    }
  }
}

// The journal's thread writes now and then: until it has written something.
void AwaitJournal() {
  const char* pattern = std::getenv("DIAPASON_JOURNAL");
  if (pattern == nullptr) return;
  std::string path = pattern;
  if (const size_t at = path.find("%p"); at != std::string::npos) {
    path.replace(at, 2, std::to_string(getpid()));
  }
  for (int i = 0; i < kLongestWaits * 4; ++i) {
    struct stat info {};
    if (stat(path.c_str(), &info) == 0 && info.st_size > kSomeBytes) return;
    Pause(1000000);
  }
}

struct Asked {
  played::JobOptions job;
  std::string plugin;
  std::string truth;
  int stop_rank = -1;
  int stop_after = 0;
};

int Usage(const std::string& what) {
  std::fprintf(stderr, "played_program: %s\nusage: played_program [options] KIND\n", what.c_str());
  return 2;
}

// 0: fine; otherwise the exit status.
int Read(int argc, char** argv, Asked* asked) {
  const char* tuner = std::getenv("NCCL_TUNER_PLUGIN");
  if (tuner != nullptr) asked->plugin = tuner;
  asked->job.profiler = std::getenv("NCCL_PROFILER_PLUGIN") != nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--steps" || word == "--real-time") {
      (word == "--steps" ? asked->job.steps : asked->job.real_time) = true;
      continue;
    }
    if (word.rfind("--", 0) != 0) {
      asked->job.kind = word;
      continue;
    }
    if (i + 1 == argc) return Usage(word + " needs a value, or is not known");
    const std::string value = argv[++i];
    if (word == "--plugin") {
      asked->plugin = value;
      asked->job.profiler = true;
    } else if (word == "--ranks") {
      asked->job.cluster.ranks = std::atoi(value.c_str());
    } else if (word == "--iterations") {
      asked->job.iterations = std::atoi(value.c_str());
    } else if (word == "--seed") {
      asked->job.cluster.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (word == "--noise") {
      asked->job.cluster.noise = std::atof(value.c_str());
    } else if (word == "--slow-rank") {
      asked->job.cluster.slow_rank = std::atof(value.c_str());
    } else if (word == "--pace") {
      g_pace = std::min(999999L, std::atol(value.c_str())) * 1000;
    } else if (word == "--print-every") {
      asked->job.print_every = std::atoi(value.c_str());
    } else if (word == "--truth") {
      asked->truth = value;
    } else if (word == "--stop" &&
               std::sscanf(value.c_str(), "%d:%d", &asked->stop_rank, &asked->stop_after) == 2) {
      continue;
    } else {
      return Usage("'" + word + " " + value + "' is not known");
    }
  }
  const int ranks = asked->job.cluster.ranks;
  if (!played::Job::IsKind(asked->job.kind)) return Usage("'" + asked->job.kind + "' is no kind");
  if (ranks < 2 || ranks > kMostRanks || ranks % 2 != 0) return Usage("an even number of ranks");
  if (asked->plugin.empty()) return Usage("no plugin: --plugin FILE or NCCL_TUNER_PLUGIN");
  return 0;
}

int RunRank(const Asked& asked, int rank) {
  alarm(kLongestSeconds);
  g_rank = rank;
  g_ranks = asked.job.cluster.ranks;
  if (!asked.job.real_time) played::UseVirtualClock();
  played::JobOptions options = asked.job;
  options.cluster.self = rank;
  options.job = static_cast<uint64_t>(getppid());
  options.stop_after = rank == asked.stop_rank ? asked.stop_after : 0;
  options.made_call = MadeCall;
  options.stop = [] {
    g_board->over[g_rank].store(true);
    AwaitJournal();
    _exit(0);
  };
  if (options.kind == "groups") played::PlayVersion(22900);
  const played::Plugin plugin = played::LoadPlugin(asked.plugin);
  played::Job job(plugin, options);
  const bool fine = job.Run();
  g_board->over[rank].store(true);
  if (!asked.truth.empty()) {
    std::ofstream(asked.truth + "." + std::to_string(rank))
        << job.truth().Json(job.cluster()) << "\n";
  }
  return fine ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Asked asked;
  if (const int status = Read(argc, argv, &asked); status != 0) return status;
  g_board = static_cast<Board*>(
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (g_board == MAP_FAILED) return 1;
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < asked.job.cluster.ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      // The ranks end with the program, as those of launchers do.
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      std::exit(RunRank(asked, rank));
    }
    ranks.push_back(child);
  }
  bool fine = true;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    int status = 0;
    waitpid(ranks[rank], &status, 0);
    g_board->over[rank].store(true);
    fine = fine && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  return fine ? 0 : 1;
}
