// How joining and epochs grow with the ranks: `./dev bench join [RANKS...] [memory:RANKS...]`.
//
// Ranks are threads of a few processes, each with a store of its own. For every store and number of
// ranks: the time until the last rank has joined (with opening the store), commands and bytes of a
// rank to join, commands of an epoch, and the CPU time of the server. In the simulated store the
// cells are in memory, which shows the commands of more ranks than there can be connections here.
#include "agree/join.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "agree/epochs.h"
#include "agree/store.h"
#include "agree/testing.h"
#include "base/file.h"
#include "base/text.h"
#include "cell_server/served_store.h"
#include "cell_server/testing.h"

namespace diapason {
namespace {

using agree::CellStore;
using std::chrono::steady_clock;

constexpr int kProcesses = 4;
constexpr size_t kKeysAtOnce = 512;
constexpr uint64_t kCalls = 200;
constexpr size_t kStack = 256 << 10;

// In memory that all processes share.
struct Figures {
  std::atomic<uint64_t> commands{0};
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> leader{0};   // commands of rank 0
  std::atomic<uint64_t> epochs{0};   // commands in epochs
  std::atomic<uint64_t> entered{0};  // epochs
  std::atomic<int> joined{0};
  std::atomic<int> failed{0};
  std::atomic<int> ready{0};
  std::atomic<int64_t> last{0};  // when the last rank had joined
};

// Counts what goes to another store.
class CountingStore : public CellStore {
 public:
  explicit CountingStore(CellStore* store) : store_(store) {}
  using CellStore::Propose;
  using CellStore::Read;
  using CellStore::ReadMany;
  Result<std::string> Propose(std::string_view key, std::string_view value,
                              Deadline deadline) override {
    Count(1, key.size() + 2 * value.size());
    return store_->Propose(key, value, deadline);
  }
  Result<std::optional<std::string>> Read(std::string_view key, Deadline deadline) override {
    auto read = store_->Read(key, deadline);
    Count(1, key.size() + (read.ok() && read.value() ? read.value()->size() : 0));
    return read;
  }
  Result<std::vector<std::optional<std::string>>> ReadMany(const std::vector<std::string>& keys,
                                                           Deadline deadline) override {
    auto read = store_->ReadMany(keys, deadline);
    size_t moved = 0;
    for (const std::string& key : keys) moved += key.size();
    for (size_t i = 0; read.ok() && i < keys.size(); ++i) {
      moved += read.value()[i] ? read.value()[i]->size() : 0;
    }
    Count((keys.size() + kKeysAtOnce - 1) / kKeysAtOnce, moved);
    return read;
  }
  void Forget(std::string_view, Deadline) override {}
  double Fullness() override { return store_->Fullness(); }
  std::string Describe() const override { return store_->Describe(); }
  bool Mine() const override { return store_->Mine(); }

  uint64_t commands = 0;
  uint64_t bytes = 0;

 private:
  void Count(uint64_t some, uint64_t long_) {
    commands += some;
    bytes += long_;
  }
  CellStore* const store_;
};

// The cells of all ranks of this process.
class MemoryStore : public CellStore {
 public:
  using CellStore::Propose;
  using CellStore::Read;
  Result<std::string> Propose(std::string_view key, std::string_view value, Deadline) override {
    const std::lock_guard lock(mutex_);
    return cells_.emplace(key, value).first->second;
  }
  Result<std::optional<std::string>> Read(std::string_view key, Deadline) override {
    const std::lock_guard lock(mutex_);
    const auto found = cells_.find(key);
    return found == cells_.end() ? std::nullopt : std::optional<std::string>(found->second);
  }
  void Forget(std::string_view, Deadline) override {}
  double Fullness() override { return 0; }
  std::string Describe() const override { return "memory"; }
  bool Mine() const override { return true; }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string, std::less<>> cells_;
};

struct Case {
  std::string name;
  std::string where;  // "": in memory
  int ranks = 0;
};

void BeRank(const Case& one, int rank, MemoryStore* memory, Figures* figures) {
  agree::StoreOptions options;
  options.where = one.where;
  options.job = Format("bench-{}", one.ranks);
  options.secret = cell_server::kTestSecret;
  options.limit = std::chrono::seconds(60);
  std::unique_ptr<CellStore> own;
  if (memory == nullptr) {
    auto opened = agree::OpenStore(options);
    if (!opened.ok()) {
      if (figures->failed++ == 0) {
        std::fprintf(stderr, "%s\n", opened.status().message().c_str());
      }
      return;
    }
    own = std::move(opened).value();
  }
  CountingStore store(memory != nullptr ? memory : own.get());
  agree::JoinRequest request;
  request.comm_id = 0x1f;
  request.rank = rank;
  request.ranks = one.ranks;
  // About as long as those of the plugin.
  request.alike = "build=1 " + std::string(600, 'a');
  request.offer = std::string(2000, 'p');
  request.limit = std::chrono::seconds(900);  // never reached
  request.patience = std::chrono::seconds(60);
  const auto outcome = agree::Join(&store, request);
  if (!outcome.ok() || !outcome.value().together) {
    if (figures->failed++ == 0) {
      std::fprintf(stderr, "%s\n",
                   (outcome.ok() ? outcome.value().why_not : outcome.status().message()).c_str());
    }
    return;
  }
  figures->commands += store.commands;
  figures->bytes += store.bytes;
  if (rank == 0) figures->leader = store.commands;
  figures->last = std::max<int64_t>(figures->last, steady_clock::now().time_since_epoch().count());
  ++figures->joined;
  // Every rank enters the same epochs.
  store.commands = 0;
  agree::EpochLog::Options epochs;
  epochs.prefix = outcome.value().prefix + "allreduce.20.";
  epochs.opening_calls = 1;
  epochs.hold_calls = 1;
  agree::EpochLog log(&store, epochs);
  for (uint64_t call = 0; call < kCalls; ++call) static_cast<void>(log.At(call).ok());
  figures->epochs += store.commands;
  figures->entered += log.newest().number - 1;  // the first two have no cell
  if (memory != nullptr) return;
  // A job's cells are removed with its last rank. The more ranks, the less often each looks: they
  // would keep the others from running.
  ++figures->ready;
  while (figures->ready < one.ranks && figures->failed == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + one.ranks / 8));
  }
}

double CpuSeconds(pid_t pid) {
  if (pid <= 0) return 0;
  const Result<std::string> text = ReadFile(Format("/proc/{}/stat", static_cast<int>(pid)), 4096);
  if (!text.ok()) return 0;
  const std::vector<std::string_view> words =
      Split(std::string_view(text.value()).substr(text.value().rfind(')') + 2), ' ');
  uint64_t user = 0;
  uint64_t system = 0;
  if (words.size() < 13 || !ParseUnsigned(words[11], &user) || !ParseUnsigned(words[12], &system)) {
    return 0;
  }
  return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

void RunThreads(const Case& one, int first, int step, MemoryStore* memory, Figures* figures) {
  std::vector<std::thread> threads;
  for (int rank = first; rank < one.ranks; rank += step) {
    threads.emplace_back([&, rank] { BeRank(one, rank, memory, figures); });
  }
  for (std::thread& thread : threads) thread.join();
}

bool Measure(const Case& one, pid_t server) {
  auto* const figures = new (::mmap(nullptr, sizeof(Figures), PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Figures;
  const double cpu = CpuSeconds(server);
  const int64_t began = steady_clock::now().time_since_epoch().count();
  const bool simulated = one.where.empty();
  std::vector<pid_t> processes;
  for (int i = 0; i < (simulated ? 1 : kProcesses); ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      MemoryStore memory;
      RunThreads(one, i, simulated ? 1 : kProcesses, simulated ? &memory : nullptr, figures);
      ::_exit(0);
    }
    processes.push_back(pid);
  }
  for (const pid_t pid : processes) ::waitpid(pid, nullptr, 0);
  const bool fine = figures->joined == one.ranks;
  const double ranks = one.ranks;
  std::printf("%-8s %7d %9.2f %10.1f %9llu %8.1f %8.0f %8.2f%s\n", one.name.c_str(), one.ranks,
              static_cast<double>(figures->last - began) * 1e-9,
              static_cast<double>(figures->commands) / ranks,
              static_cast<unsigned long long>(figures->leader),
              static_cast<double>(figures->epochs) / static_cast<double>(figures->entered),
              static_cast<double>(figures->bytes) / ranks, CpuSeconds(server) - cpu,
              fine ? "" : "  not all ranks have joined");
  std::fflush(stdout);
  return fine;
}

}  // namespace
}  // namespace diapason

int main(int argc, char** argv) {
  using namespace diapason;
  std::vector<int> real;
  std::vector<int> simulated;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    constexpr std::string_view kMemory = "memory:";
    if (word.starts_with(kMemory)) simulated.push_back(std::atoi(argv[i] + kMemory.size()));
    if (!word.starts_with(kMemory)) real.push_back(std::atoi(argv[i]));
  }
  if (argc == 1) {
    real = {64, 256, 1024, 4096};
    simulated = {64, 256, 1024, 4096, 16384};
  }
  cell_server::RaiseDescriptorLimit();
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, kStack);
  pthread_setattr_default_np(&small);
  std::printf("%-8s %7s %9s %10s %9s %8s %8s %8s\n", "store", "ranks", "joined s", "cmds/rank",
              "of rank 0", "/epoch", "B/rank", "CPU s");
  bool fine = true;
  for (const int ranks : real) {
    const cell_server::ServerProcess server;
    fine = Measure({"tcp", server.Url(), ranks}, server.pid()) && fine;
  }
  const auto redis = agree::RedisServer::Start({"--maxclients", "20000"});
  for (const int ranks : real) {
    if (redis != nullptr) fine = Measure({"redis", redis->Url(), ranks}, redis->pid()) && fine;
  }
  for (const int ranks : simulated) fine = Measure({"memory", "", ranks}, 0) && fine;
  return fine ? 0 : 1;
}
