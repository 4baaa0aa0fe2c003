// How many epochs of a job that learns are held, because nothing was agreed on in time: processes
// with the built plugin on a library that is played (tests/learn). The ranks make bursts of calls
// of one size and meet after each, as a decoding step does.
//
//   bench_ahead PLUGIN [--calls 4000] [--burst 32] [--gap-us 20] [--rest-us 2000] [--ranks 4]
//               [--store shm|file|URL]
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "played_library.h"

namespace {

constexpr int kMostRanks = 16;
constexpr size_t kBytes = 32u << 10;

struct Options {
  std::string plugin;
  std::string store = "shm";
  int ranks = 4;
  uint64_t calls = 4000;
  uint64_t burst = 32;
  double gap = 20e-6;
  double rest = 2000e-6;
};

struct Board {
  std::atomic<uint64_t> bursts[kMostRanks];
};

void SpinUntil(double time) {
  while (diapason::SteadySeconds() < time) {
  }
}

// Kernels end in the order of their launches, on all ranks at once.
int RunRank(const Options& options, int rank, Board* board) {
  const played::Plugin plugin = played::LoadPlugin(options.plugin);
  const played::LabPhysics physics;
  played::Communicator::Options how;
  how.id = 0xa4ead000 + static_cast<uint64_t>(getppid());
  how.ranks = how.nodes = options.ranks;
  how.rank = rank;
  played::Communicator communicator(plugin, physics, how);
  if (communicator.status != 0) return 1;
  for (uint64_t burst = 0; burst * options.burst < options.calls; ++burst) {
    for (uint64_t i = 0; i < options.burst; ++i) {
      const double begin = diapason::SteadySeconds();
      int error = 0;
      communicator.AllReduce(kBytes, played::Communicator::Way::kEager, &error);
      if (error != 0) return 1;
      SpinUntil(begin + options.gap);
    }
    board->bursts[rank].store(burst + 1);
    for (int other = 0; other < options.ranks; ++other) {
      while (board->bursts[other].load() <= burst) usleep(50);
    }
    usleep(static_cast<useconds_t>(options.rest * 1e6));
  }
  return 0;
}

struct Epochs {
  int all = 0;
  int held = 0;
  uint64_t held_calls = 0;
  uint64_t tried_calls = 0;
};

long Field(const std::string& line, const std::string& name) {
  const size_t at = line.find("\"" + name + "\":");
  return at == std::string::npos ? -1 : std::atol(line.c_str() + at + name.size() + 3);
}

Epochs ReadJournal(const std::string& path) {
  Epochs epochs;
  std::map<long, bool> held;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const long epoch = Field(line, "epoch");
    if (line.find("\"type\":\"decision\"") == std::string::npos || epoch < 2) continue;
    const bool is_held = line.find("\"reason\":\"held\"") != std::string::npos;
    held[epoch] = held[epoch] || is_held;
    epochs.held_calls += is_held ? 1 : 0;
    epochs.tried_calls += line.find("\"reason\":\"trying\"") != std::string::npos ? 1 : 0;
  }
  for (const auto& [epoch, one] : held) {
    ++epochs.all;
    epochs.held += one ? 1 : 0;
  }
  return epochs;
}

int Run(const Options& options) {
  const std::string folder = "/tmp/diapason-ahead." + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  auto* board = static_cast<Board*>(
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  setenv("DIAPASON_MODE", "learn", 1);
  setenv("DIAPASON_STORE",
         options.store == "file" ? ("file:" + folder).c_str() : options.store.c_str(), 1);
  setenv("DIAPASON_JOB", ("ahead" + std::to_string(getpid())).c_str(), 1);
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < options.ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(300);
      setenv("DIAPASON_JOURNAL", (folder + "/j." + std::to_string(rank) + ".jsonl").c_str(), 1);
      std::exit(RunRank(options, rank, board));
    }
    ranks.push_back(child);
  }
  bool fine = true;
  for (const pid_t rank : ranks) {
    int status = 0;
    waitpid(rank, &status, 0);
    fine = fine && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  const Epochs epochs = ReadJournal(folder + "/j.0.jsonl");
  std::filesystem::remove_all(folder);
  if (!fine || epochs.all == 0) {
    std::fprintf(stderr, "bench_ahead: the ranks did not learn\n");
    return 1;
  }
  std::printf(
      "store %s, %d ranks, bursts of %llu calls, %.0f us apart: %d of %d epochs held (%.1f %%), "
      "%llu of %llu calls; %llu calls tried something\n",
      options.store.c_str(), options.ranks, static_cast<unsigned long long>(options.burst),
      options.gap * 1e6, epochs.held, epochs.all, 100.0 * epochs.held / epochs.all,
      static_cast<unsigned long long>(epochs.held_calls),
      static_cast<unsigned long long>(options.calls),
      static_cast<unsigned long long>(epochs.tried_calls));
  return 0;
}

bool Parse(int count, char** words, Options* options) {
  if (count < 2 || count % 2 != 0) return false;
  options->plugin = words[1];
  for (int i = 2; i + 1 < count; i += 2) {
    const std::string name = words[i];
    const double value = std::atof(words[i + 1]);
    if (name == "--store") {
      options->store = words[i + 1];
    } else if (name == "--ranks") {
      options->ranks = std::clamp(static_cast<int>(value), 1, kMostRanks);
    } else if (name == "--calls") {
      options->calls = static_cast<uint64_t>(std::clamp(value, 1.0, 1e7));
    } else if (name == "--burst") {
      options->burst = static_cast<uint64_t>(std::clamp(value, 1.0, 1e6));
    } else if (name == "--gap-us") {
      options->gap = std::clamp(value, 0.0, 1e6) * 1e-6;
    } else if (name == "--rest-us") {
      options->rest = std::clamp(value, 0.0, 1e6) * 1e-6;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

int main(int count, char** words) {
  Options options;
  if (Parse(count, words, &options)) return Run(options);
  std::fprintf(stderr,
               "bench_ahead PLUGIN [--calls N] [--burst N] [--gap-us N] [--rest-us N] [--ranks N] "
               "[--store shm|file|URL]\n");
  return 2;
}
