// One rank of a job, started by any launcher, on a library that is played: it loads the plugin that
// NCCL_TUNER_PLUGIN names, as NCCL does, and makes calls. Ranks keep in step through a file.
//
//   played_rank BOARD [--calls N] [--size BYTES] [--differ RANK] [--exit STATUS] [--wait FILE]
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

#include "../learn/played_library.h"

namespace {

constexpr int kMostRanks = 64;
constexpr uint32_t kApart = 100;  // calls; real ones would wait for each other

struct Board {
  std::atomic<uint32_t> calls[kMostRanks];
};

int Number(std::initializer_list<const char*> names, int otherwise) {
  for (const char* name : names) {
    if (const char* value = std::getenv(name)) return std::atoi(value);
  }
  return otherwise;
}

struct Options {
  uint32_t calls = 300;
  size_t bytes = 512u << 10;
  int differ = -1;  // this rank's library runs something else than it was told
  int status = 0;
  const char* wait = nullptr;  // after the calls, until this file is there
};

Options Read(int argc, char** argv) {
  Options options;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--calls") options.calls = static_cast<uint32_t>(std::atoi(argv[i + 1]));
    if (name == "--size") options.bytes = static_cast<size_t>(std::atoll(argv[i + 1]));
    if (name == "--differ") options.differ = std::atoi(argv[i + 1]);
    if (name == "--exit") options.status = std::atoi(argv[i + 1]);
    if (name == "--wait") options.wait = argv[i + 1];
  }
  return options;
}

void Pause(long microseconds) {
  const timespec pause{0, microseconds * 1000};
  nanosleep(&pause, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  alarm(1000);
  const Options options = Read(argc, argv);
  const int rank = Number({"OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "RANK"}, 0);
  const int ranks = Number({"OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "WORLD_SIZE"}, 1);
  const char* path = std::getenv("NCCL_TUNER_PLUGIN");
  if (path == nullptr) {
    std::printf("rank %d: no plugin\n", rank);
    return options.status;
  }
  const int file = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, sizeof(Board)) != 0) return 2;
  auto* board = static_cast<Board*>(
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  if (board == MAP_FAILED || ranks > kMostRanks) return 2;
  const played::Plugin plugin = played::LoadPlugin(path);
  const played::LabPhysics physics;
  played::Communicator::Options communicator;
  communicator.id = 0x5eed;
  communicator.ranks = ranks;
  communicator.rank = rank;
  communicator.profiler = std::getenv("NCCL_PROFILER_PLUGIN") != nullptr;
  {
    played::Communicator played(plugin, physics, communicator);
    for (uint32_t n = 0; n < options.calls; ++n) {
      int error = 0;
      played.MisreportRuns(rank == options.differ && n >= options.calls / 2);
      (void)played.AllReduce(options.bytes, played::Communicator::Way::kEager, &error);
      if (error != 0) {
        std::printf("rank %d: call %u failed\n", rank, n);
        return 3;
      }
      board->calls[rank].store(n + 1);
      for (int other = 0; other < ranks; ++other) {
        for (int i = 0; i < 100000 && n > board->calls[other].load() + kApart; ++i) Pause(100);
      }
      Pause(40);
    }
    while (options.wait != nullptr && access(options.wait, F_OK) != 0) Pause(10000);
  }
  std::printf("rank %d of %d: done\n", rank, ranks);
  return options.status;
}
