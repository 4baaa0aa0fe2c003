// What it costs when many ranks of comm.h find each other: they join rank 0's store, authenticated,
// and each gathers a value of all. Ranks are threads of a few processes; rank 0 has one of its own,
// so that its figures are those of the store.
//
//   bench_rendezvous [--ranks 64,256,1024] [--processes 4]
//   bench_rendezvous --one      one rank, which a launcher has given its place by RANK and so on
#include <dirent.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/environment.h"
#include "base/text.h"
#include "rendezvous/secret.h"
#include "rendezvous/tcp_store.h"
#include "report/table.h"

namespace diapason {
namespace {

using rendezvous::StoreAddress;
using rendezvous::TcpStore;

constexpr auto kLimit = std::chrono::minutes(5);
constexpr size_t kValueBytes = 64;  // about that of a rank's address

std::vector<int> Members(int size) {
  std::vector<int> members(static_cast<size_t>(size));
  std::iota(members.begin(), members.end(), 0);
  return members;
}

Status JoinAndGather(const StoreAddress& address, int rank, int size,
                     std::unique_ptr<TcpStore>* store) {
  const Deadline deadline = std::chrono::steady_clock::now() + kLimit;
  ASSIGN_OR_RETURN(*store, TcpStore::Join(address, rank, size, deadline));
  return (*store)->Gather("all", Members(size), std::string(kValueBytes, 'x'), deadline).status();
}

// The ranks first, first + step, ... in this process; returns how many failed.
int RunRanks(const StoreAddress& address, int first, int step, int size) {
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int rank = first; rank < size; rank += step) {
    threads.emplace_back([&, rank] {
      std::unique_ptr<TcpStore> store;
      const Status done = JoinAndGather(address, rank, size, &store);
      if (done.ok()) return;
      if (failed.fetch_add(1) == 0) std::fprintf(stderr, "%s\n", done.message().c_str());
    });
  }
  for (std::thread& one : threads) one.join();
  return failed.load();
}

size_t OpenDescriptors() {
  size_t count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (folder != nullptr && readdir(folder) != nullptr) ++count;
  if (folder != nullptr) closedir(folder);
  return count;
}

// One figure per row of the table; "" where it failed.
std::vector<std::string> Measure(int size, int processes, const std::string& secret) {
  StoreAddress address;
  address.host = "127.0.0.1";
  address.port = 29600 + static_cast<int>(getpid() % 2000);
  address.ports = 16;
  address.secret = secret;
  const auto start = std::chrono::steady_clock::now();
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(RunRanks(address, 1 + i, processes, size) == 0 ? 0 : 1);
    children.push_back(child);
  }
  std::unique_ptr<TcpStore> store;
  const Status done = JoinAndGather(address, 0, size, &store);
  const size_t descriptors = OpenDescriptors();
  bool failed = !done.ok();
  if (failed) std::fprintf(stderr, "%s\n", done.message().c_str());
  for (const pid_t child : children) {
    int status = 0;
    failed = waitpid(child, &status, 0) != child || status != 0 || failed;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const double cpu = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                     1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  if (failed) return {Format("{}", size), "failed", "", "", ""};
  return {Format("{}", size), Format("{:.2f} s", seconds.count()), Format("{:.2f} s", cpu),
          Format("{:.0f} MiB", static_cast<double>(used.ru_maxrss) / 1024),
          Format("{}", descriptors)};
}

int NumberIn(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : 0;
}

// Rank 0 prints the time.
int RunOne() {
  const auto start = std::chrono::steady_clock::now();
  StoreAddress address;
  const char* master = std::getenv("MASTER_ADDR");
  address.host = master != nullptr ? master : "localhost";
  address.port = NumberIn("MASTER_PORT");
  const Result<std::string> secret = rendezvous::ReadSecret(ProcessEnvironment());
  if (secret.ok()) address.secret = secret.value();
  std::unique_ptr<TcpStore> store;
  const int rank = NumberIn("RANK");
  const int size = NumberIn("WORLD_SIZE");
  const Status done = JoinAndGather(address, rank, size, &store);
  if (!done.ok()) {
    std::fprintf(stderr, "%s\n", done.message().c_str());
    return 1;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  // Rank 0 keeps the store: it leaves last.
  static_cast<void>(
      store->Collect("end", Members(size), "", false, std::chrono::steady_clock::now() + kLimit));
  if (rank == 0) std::printf("%d ranks have all after %.2f s\n", size, seconds.count());
  return 0;
}

int Main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--one") == 0) return RunOne();
  std::string ranks = "64,256,1024";
  int processes = 4;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--ranks") == 0) {
      ranks = argv[i + 1];
    } else if (std::strcmp(argv[i], "--processes") == 0) {
      processes = std::max(1, std::atoi(argv[i + 1]));
    } else {
      std::fprintf(stderr, "usage: bench_rendezvous [--ranks 64,256,1024] [--processes 4]\n");
      return 2;
    }
  }
  const Result<std::string> secret = rendezvous::DrawSecret();
  if (!secret.ok()) return 1;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  report::Table table({"ranks", "all have all", "rank 0's CPU", "its memory", "its descriptors"});
  table.SetAlign(std::vector<report::Table::Align>(5, report::Table::Align::kRight));
  for (const std::string_view one : Split(ranks, ',')) {
    const int size = std::atoi(std::string(one).c_str());
    int ends[2];
    if (size < 2 || pipe(ends) != 0) continue;
    // In a process of its own: peak memory and CPU time are those of this size alone.
    const pid_t child = fork();
    if (child == 0) {
      const std::string row = Join(Measure(size, processes, secret.value()), "\t");
      _exit(write(ends[1], row.data(), row.size()) < 0 ? 1 : 0);
    }
    close(ends[1]);
    char text[512] = {};
    const ssize_t length = read(ends[0], text, sizeof(text) - 1);
    close(ends[0]);
    waitpid(child, nullptr, 0);
    std::vector<std::string> row;
    for (const std::string_view cell :
         Split(std::string_view(text, length > 0 ? length : 0), '\t')) {
      row.emplace_back(cell);
    }
    if (row.size() == 5) table.Add(row);
  }
  std::fputs(table.Text().c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace diapason

int main(int argc, char** argv) { return diapason::Main(argc, argv); }
