// conformance: one list of cases over whichever backend it is told. One rank of a job, or with
// --threads N all ranks as threads. Every failure is a line on standard error; the last line on
// standard output has the counts. Exit status: 0 all held, 1 something did not, 2 wrong usage;
// with --skip-without 77 where the backend is not usable, which --probe asks and nothing else.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/text.h"
#include "device.h"
#include "session.h"

namespace diapason::conformance {
namespace {

constexpr char kUsage[] =
    "conformance --backend gloo|mpi|nccl|rccl|sim|auto [--device] [--quick|--full]\n"
    "            [--configs] [--filter WORD,WORD...] [--threads N] [--cluster NAME] [--seconds N]\n"
    "            [--skip-without] [--probe] [--list]\n";

// Beyond this something hangs in a way no limit of ours ended.
constexpr unsigned kAlarmSeconds = 1400;

std::vector<Case> Cases(bool configs) {
  std::vector<Case> all;
  const auto append = [&](std::vector<Case> cases) {
    all.insert(all.end(), cases.begin(), cases.end());
  };
  if (configs) {
    append(ConfigCases());
    return all;
  }
  append(StatisticsCases());
  append(CollectiveCases());
  append(WireCases());
  append(AsyncCases());
  append(PointToPointCases());
  append(SplitCases());
  append(RefusalCases());
  return all;
}

// A case is wanted when its name has one of the filter's words in it; they are separated by commas.
bool Wanted(const std::string& filter, const char* name) {
  for (const std::string_view word : Split(filter, ',')) {
    if (std::string_view(name).find(word) != std::string_view::npos) return true;
  }
  return filter.empty();
}

void RunCases(Session& session) {
  const Settings& settings = session.settings();
  for (const Case& one : Cases(settings.configs)) {
    if (!Wanted(settings.filter, one.name)) continue;
    if (settings.quick && !one.quick) continue;
    session.Begin(one.name);
    const double start = session.group().Now();
    one.run(session);
    if (session.broken()) {
      std::fprintf(stderr, "FAIL rank %d: the group is broken in '%s'; the rest was not tried\n",
                   session.rank(), one.name);
      return;
    }
    if (std::getenv("CONFORMANCE_TIMES") != nullptr && session.rank() == 0) {
      std::fprintf(stderr, "%8.3f s  %s\n", session.group().Now() - start, one.name);
    }
    session.TakeLog();
  }
}

struct Totals {
  int64_t checks = 0;
  int64_t failures = 0;
  bool known = false;  // whether they are of all ranks
};

// Every rank's counts in one line, so that a failure shows whichever line one reads.
Totals Sum(Session& session) {
  int64_t counts[2] = {session.checks(), session.failures()};
  const bool known =
      !session.broken() && session.group().AllReduce(counts, counts, 2, DataType::kI64).ok();
  return {counts[0], counts[1], known};
}

int RunRank(const Settings& settings, const GroupOptions& options) {
  if (settings.device) {
    const char* local = std::getenv("LOCAL_RANK");
    const std::string reason = BindDevice(local == nullptr ? 0 : std::atoi(local));
    if (!reason.empty()) {
      std::fprintf(stderr, "conformance: skipped: %s\n", reason.c_str());
      return 77;
    }
  }
  Session session(settings, options);
  if (!session.Create()) return 1;
  RunCases(session);
  const Totals totals = Sum(session);
  if (session.rank() == 0 || !totals.known) {
    for (const std::string& note : session.notes()) std::printf("note: %s\n", note.c_str());
    std::printf("conformance: backend %s, %d ranks, %lld checks, %lld failures\n",
                session.group().backend().c_str(), session.size(),
                static_cast<long long>(totals.checks), static_cast<long long>(totals.failures));
    std::fflush(stdout);
  }
  session.Destroy();
  return totals.failures == 0 && totals.known ? 0 : 1;
}

int RunThreads(const Settings& settings, GroupOptions options) {
  std::vector<std::thread> threads;
  std::vector<int> results(static_cast<size_t>(settings.threads), 1);
  options.size = settings.threads;
  for (int rank = 0; rank < settings.threads; ++rank) {
    options.rank = rank;
    options.local_rank = rank;
    threads.emplace_back([&settings, options, rank, &results] {
      results[static_cast<size_t>(rank)] = RunRank(settings, options);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int result : results) {
    if (result != 0) return result;
  }
  return 0;
}

// Why the backend cannot be tried on this machine; "" where it can.
std::string Missing(const std::string& backend) {
  if (backend == "auto") return "";
  for (const BackendInfo& info : Backends()) {
    if (info.name == backend) return info.usable ? "" : info.reason;
  }
  return "unknown backend";
}

int Usage(const std::string& problem) {
  std::fprintf(stderr, "conformance: %s\n%s", problem.c_str(), kUsage);
  return 2;
}

int Main(int argc, char** argv) {
  Settings settings;
  bool skip_without = false;
  bool probe = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&]() -> std::string { return i + 1 < argc ? argv[++i] : ""; };
    if (word == "--backend") {
      settings.backend = value();
    } else if (word == "--device") {
      settings.device = true;
    } else if (word == "--quick") {
      settings.quick = true;
    } else if (word == "--full") {
      settings.quick = false;
    } else if (word == "--configs") {
      settings.configs = true;
    } else if (word == "--filter") {
      settings.filter = value();
    } else if (word == "--cluster") {
      settings.cluster = value();
    } else if (word == "--threads") {
      settings.threads = std::atoi(value().c_str());
      if (settings.threads < 1) return Usage("--threads needs a positive number");
    } else if (word == "--seconds") {
      settings.seconds = std::atoi(value().c_str());
    } else if (word == "--skip-without") {
      skip_without = true;
    } else if (word == "--probe") {
      skip_without = probe = true;
    } else if (word == "--list") {
      for (const bool configs : {false, true}) {
        for (const Case& one : Cases(configs)) std::puts(one.name);
      }
      return 0;
    } else {
      return Usage("unknown option '" + word + "'");
    }
  }
  if (skip_without) {
    const std::string missing = Missing(settings.backend);
    if (!missing.empty()) {
      std::fprintf(stderr, "conformance: skipped: %s: %s\n", settings.backend.c_str(),
                   missing.c_str());
      return 77;
    }
  }
  if (probe) return 0;
  alarm(kAlarmSeconds);
  GroupOptions options;
  options.backend = settings.backend;
  options.cluster = settings.cluster;
  options.timeout = std::chrono::seconds(settings.seconds > 0 ? settings.seconds : 300);
  // Far above what these sizes take, and far below the half second that one case is late.
  options.slow_call = std::chrono::milliseconds(200);
  options.choose = settings.configs;
  return settings.threads > 0 ? RunThreads(settings, options) : RunRank(settings, options);
}

}  // namespace
}  // namespace diapason::conformance

int main(int argc, char** argv) { return diapason::conformance::Main(argc, argv); }
