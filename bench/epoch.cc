// What a rank pays for agreement: the call that enters a new epoch, on rank 0 and on the others,
// and a call within a span. All ranks enter at the same moment, as collectives make them do; rank
// 0's proposals come from a thread of its own.
//
//   bench_epoch [--store shm|file:/folder|redis://host:port] [--ranks N] [--epochs N] [--json]
//
// Bar: entering an epoch takes less than 20 us (median) with 8 ranks in shared memory.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agree/epochs.h"
#include "agree/join.h"
#include "agree/store.h"
#include "base/stats.h"
#include "base/text.h"
#include "base/tick_clock.h"
#include "report/table.h"

namespace diapason {
namespace {

constexpr double kBarSeconds = 20e-6;
constexpr int kMostRanks = 64;
constexpr uint64_t kCalls = 17;  // of an epoch: one that enters it, and a batch within
constexpr uint64_t kWarmUp = 50;

struct Options {
  std::string store = "shm";
  uint64_t ranks = 8;
  uint64_t epochs = 2000;
  bool json = false;
};

// In memory that all ranks share.
struct Shared {
  pthread_barrier_t barrier;
  std::atomic<int> failed;
  std::atomic<uint64_t> held;
};

double* SamplesOf(Shared* shared, const Options& options, uint64_t rank, bool within) {
  auto* all = reinterpret_cast<double*>(shared + 1);
  return all + (rank * 2 + (within ? 1 : 0)) * options.epochs;
}

Schedule NextSchedule(uint64_t epoch) {
  Schedule schedule;
  schedule.incumbent.algorithm = 1;
  Segment segment;
  segment.config.algorithm = static_cast<int>(epoch % 5);
  segment.calls = 1;
  schedule.segments.push_back(segment);
  segment.config.algorithm = 1;
  segment.calls = kCalls - 1;
  schedule.segments.push_back(segment);
  return schedule;
}

// Proposes the epoch after the one that rank 0 has entered.
class Leader {
 public:
  Leader(agree::CellStore* store, std::string prefix)
      : store_(store), prefix_(std::move(prefix)), thread_([this] { Run(); }) {}
  ~Leader() {
    entered_.store(UINT64_MAX);
    entered_.notify_all();
    thread_.join();
  }
  void Entered(uint64_t epoch) {
    entered_.store(epoch);
    entered_.notify_all();
  }

 private:
  void Run() {
    for (uint64_t done = 0;;) {
      entered_.wait(done);
      const uint64_t epoch = entered_.load();
      if (epoch == UINT64_MAX) return;
      done = epoch;
      static_cast<void>(agree::EpochLog::Propose(store_, prefix_, static_cast<uint32_t>(epoch + 1),
                                                 NextSchedule(epoch + 1))
                            .ok());
    }
  }

  agree::CellStore* store_;
  std::string prefix_;
  std::atomic<uint64_t> entered_ = 0;
  std::thread thread_;
};

Status Walk(const Options& options, uint64_t rank, Shared* shared) {
  agree::StoreOptions where;
  where.where = options.store;
  where.job = Format("bench-epoch-{}", static_cast<int>(::getppid()));
  Result<std::unique_ptr<agree::CellStore>> store = agree::OpenStore(where);
  if (!store.ok()) return store.status();
  agree::JoinRequest request;
  request.comm_id = 1;
  request.rank = static_cast<int>(rank);
  request.ranks = static_cast<int>(options.ranks);
  const Result<agree::JoinOutcome> joined = agree::Join(store.value().get(), request);
  if (!joined.ok()) return joined.status();
  if (!joined.value().together) return Unavailable(joined.value().why_not);

  agree::EpochLog::Options log_options;
  log_options.prefix = joined.value().prefix;
  log_options.incumbent.algorithm = 1;
  log_options.opening_calls = kCalls;
  log_options.hold_calls = kCalls;
  agree::EpochLog log(store.value().get(), log_options);
  std::unique_ptr<Leader> leader;
  if (rank == 0) {
    leader = std::make_unique<Leader>(store.value().get(), joined.value().prefix);
  }
  const TickClock& clock = TickClock::Get();
  double* entering = SamplesOf(shared, options, rank, false);
  double* within = SamplesOf(shared, options, rank, true);
  for (uint64_t epoch = 0; epoch < options.epochs + kWarmUp; ++epoch) {
    pthread_barrier_wait(&shared->barrier);
    // No rank continues without the others, so that they end together.
    if (shared->failed != 0) return Unavailable("another rank has failed");
    // Where the newest epoch ends, the next one is entered; a hold may be longer than asked for.
    uint64_t index = log.newest().end();
    const uint64_t start = clock.Now();
    const Result<agree::EpochLog::Span> span = log.At(index);
    const uint64_t entered = clock.Now();
    if (!span.ok()) {
      shared->failed = 1;
      continue;
    }
    if (leader != nullptr) leader->Entered(span.value().epoch);
    bool fine = true;
    const uint64_t begin = clock.Now();
    for (uint64_t i = 1; i < kCalls; ++i) fine = log.At(++index).ok() && fine;
    const uint64_t end = clock.Now();
    if (!fine) shared->failed = 1;
    log.Forget(index);
    // Calls that do something give the leader its time; an epoch of real ones takes longer.
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    if (span.value().held && rank == 0 && epoch >= kWarmUp) ++shared->held;
    if (epoch < kWarmUp) continue;
    entering[epoch - kWarmUp] = clock.Seconds(entered - start);
    within[epoch - kWarmUp] = clock.Seconds(end - begin) / static_cast<double>(kCalls - 1);
  }
  pthread_barrier_wait(&shared->barrier);
  if (rank == 0) store.value()->Forget("");
  return shared->failed == 0 ? Status() : Unavailable("a rank has failed");
}

struct Row {
  const char* name;
  const char* key;
  std::vector<double> samples;
};

bool Report(const Options& options, Shared* shared) {
  Row rows[] = {{"entering an epoch, other ranks", "enter_others", {}},
                {"entering an epoch, rank 0", "enter_rank0", {}},
                {"a call within a span", "within", {}}};
  for (uint64_t rank = 0; rank < options.ranks; ++rank) {
    const double* entering = SamplesOf(shared, options, rank, false);
    const double* within = SamplesOf(shared, options, rank, true);
    Row& row = rank == 0 ? rows[1] : rows[0];
    row.samples.insert(row.samples.end(), entering, entering + options.epochs);
    rows[2].samples.insert(rows[2].samples.end(), within, within + options.epochs);
  }
  using Align = report::Table::Align;
  report::Table table({"", "median us", "95 % interval", "95th percentile us", "samples"});
  table.SetAlign({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  std::string json = Format("{{\"store\": \"{}\", \"ranks\": {}, \"epochs\": {}, \"held\": {}",
                            options.store.substr(0, options.store.find(':')), options.ranks,
                            options.epochs, shared->held.load());
  bool met = true;
  for (const Row& row : rows) {
    if (row.samples.empty()) continue;
    const double median = Median(row.samples);
    const Interval interval = MedianInterval95(row.samples);
    const double slow = Quantile(row.samples, 0.95);
    table.Add({row.name, Format("{:.3f}", median * 1e6),
               Format("{:.3f} to {:.3f}", interval.low * 1e6, interval.high * 1e6),
               Format("{:.3f}", slow * 1e6), Format("{}", row.samples.size())});
    json += Format(
        ", \"{}\": {{\"median_us\": {:.4f}, \"low_us\": {:.4f}, \"high_us\": {:.4f}, \"p95_us\": "
        "{:.4f}}}",
        row.key, median * 1e6, interval.low * 1e6, interval.high * 1e6, slow * 1e6);
    if (&row != &rows[2]) met = met && interval.high < kBarSeconds;
  }
  if (options.json) {
    std::printf("%s}\n", json.c_str());
  } else {
    std::printf("%llu ranks, %llu epochs of %llu calls, %llu held\n%s",
                static_cast<unsigned long long>(options.ranks),
                static_cast<unsigned long long>(options.epochs),
                static_cast<unsigned long long>(kCalls),
                static_cast<unsigned long long>(shared->held.load()), table.Text().c_str());
    if (options.store == "shm") {
      std::printf("bar: entering an epoch below 20 us: %s\n", met ? "met" : "NOT met");
    }
  }
  return met || options.store != "shm";
}

bool Parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--json") {
      options->json = true;
      continue;
    }
    const std::string value = i + 1 < argc ? argv[++i] : "";
    bool good = name == "--store" && !value.empty();
    if (good) options->store = value;
    if (name == "--ranks") {
      good = ParseUnsigned(value, &options->ranks) && options->ranks >= 1 &&
             options->ranks <= kMostRanks;
    }
    if (name == "--epochs") {
      good = ParseUnsigned(value, &options->epochs) && options->epochs >= 1 &&
             options->epochs <= 100000;
    }
    if (!good) {
      std::fprintf(stderr, "bench_epoch: cannot use '%s %s'\n", name.c_str(), value.c_str());
      return false;
    }
  }
  return true;
}

int Main(int argc, char** argv) {
  Options options;
  if (!Parse(argc, argv, &options)) return 2;
  const size_t bytes = sizeof(Shared) + options.ranks * options.epochs * 2 * sizeof(double);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto* shared = static_cast<Shared*>(memory);
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &attributes, static_cast<unsigned>(options.ranks));
  std::vector<pid_t> ranks;
  for (uint64_t rank = 0; rank < options.ranks; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const Status status = Walk(options, rank, shared);
      if (!status.ok()) std::fprintf(stderr, "bench_epoch: %s\n", status.message().c_str());
      ::_exit(status.ok() ? 0 : 1);
    }
    ranks.push_back(pid);
  }
  bool failed = false;
  for (size_t i = 0; i < ranks.size(); ++i) {
    int status = 0;
    const pid_t ended = ::wait(&status);
    if (status == 0 || failed) continue;
    // One that died before a barrier keeps the others there.
    failed = true;
    for (const pid_t pid : ranks) {
      if (pid != ended) ::kill(pid, SIGKILL);
    }
  }
  if (failed) return 1;
  return Report(options, shared) ? 0 : 1;
}

}  // namespace
}  // namespace diapason

int main(int argc, char** argv) { return diapason::Main(argc, argv); }
