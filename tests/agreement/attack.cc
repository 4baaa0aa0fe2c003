// Many jobs under attack; see attack.h.
//
//   agreement_attack --store shm|file|redis|tcp [--runs N] [--seed S] [--jobs J]
//                    [--mutant hold|off|error]
//
// Fails when two ranks have used different configurations for one call, when a run without attacks
// was not perfect, or when nothing was learned. With --mutant a rule is broken on purpose, and it
// fails unless that is noticed. 77: there is no such store here.
#include "attack.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <vector>

#include "attack.h"
#include "base/text.h"

namespace diapason::attack {
namespace {

constexpr int kNoSuchStore = 77;
constexpr int kMostJobs = 16;

struct Options {
  std::string store = "shm";
  uint64_t runs = 300;
  uint64_t seed = 1;
  uint64_t jobs = 3;
  Mutant mutant = Mutant::kNone;
};

bool ParseOptions(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    bool good = true;
    if (name == "--store") {
      options->store = value;
      good = value == "shm" || value == "file" || value == "redis" || value == "tcp";
    } else if (name == "--runs") {
      good = ParseUnsigned(value, &options->runs);
    } else if (name == "--seed") {
      good = ParseUnsigned(value, &options->seed);
    } else if (name == "--jobs") {
      good =
          ParseUnsigned(value, &options->jobs) && options->jobs > 0 && options->jobs <= kMostJobs;
    } else if (name == "--mutant") {
      options->mutant = value == "hold"    ? Mutant::kHold
                        : value == "off"   ? Mutant::kOff
                        : value == "error" ? Mutant::kError
                                           : Mutant::kNone;
      good = options->mutant != Mutant::kNone;
    } else {
      good = false;
    }
    if (!good) {
      std::fprintf(stderr, "agreement_attack: cannot use '%s %s'\n", name.c_str(), value.c_str());
      return false;
    }
  }
  return true;
}

int Judge(const Options& options, const Tally& all) {
  std::printf(
      "%s: %llu runs, %llu of them without attacks; %llu ranks killed, %llu ended with an "
      "error, %llu times together; %llu calls compared, %llu of them learned\n",
      options.store.c_str(), static_cast<unsigned long long>(all.runs),
      static_cast<unsigned long long>(all.calm), static_cast<unsigned long long>(all.deaths),
      static_cast<unsigned long long>(all.errors), static_cast<unsigned long long>(all.together),
      static_cast<unsigned long long>(all.calls), static_cast<unsigned long long>(all.learned));
  if (options.mutant != Mutant::kNone) {
    std::printf("the mutant was noticed in %llu runs\n",
                static_cast<unsigned long long>(all.split));
    return all.split > 0 ? 0 : 1;
  }
  if (all.split > 0 || all.imperfect > 0) {
    std::printf(
        "FAILED: ranks differed in %llu runs, %llu runs were not as they should be; the "
        "first seed is %llu\n",
        static_cast<unsigned long long>(all.split), static_cast<unsigned long long>(all.imperfect),
        static_cast<unsigned long long>(all.first_bad));
    return 1;
  }
  // Not all of them: a leader that the system does not let run is late, and then there are holds.
  if (all.runs != options.runs || all.taught * 2 < all.eager ||
      (options.runs >= 200 && all.taught == 0)) {
    std::printf(
        "FAILED: too little happened: %llu runs; of %llu that should have learned, %llu did\n",
        static_cast<unsigned long long>(all.runs), static_cast<unsigned long long>(all.eager),
        static_cast<unsigned long long>(all.taught));
    return 1;
  }
  return 0;
}

int Main(int argc, char** argv) {
  Options options;
  if (!ParseOptions(argc, argv, &options)) return 2;
  auto* tallies =
      static_cast<Tally*>(::mmap(nullptr, sizeof(Tally) * kMostJobs, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (tallies == MAP_FAILED) return 1;
  std::vector<pid_t> workers;
  for (uint64_t job = 0; job < options.jobs; ++job) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      {
        const std::unique_ptr<Ground> ground = MakeGround(options.store, options.mutant);
        if (ground == nullptr) ::_exit(kNoSuchStore);
        for (uint64_t run = job; run < options.runs; run += options.jobs) {
          ground->Run(options.seed + run, &tallies[job]);
          // A mutant has to be noticed once.
          if (options.mutant != Mutant::kNone && tallies[job].split > 0) break;
        }
      }
      std::fflush(stdout);
      ::_exit(0);
    }
    workers.push_back(pid);
  }
  bool missing = false;
  bool failed = false;
  for (const pid_t pid : workers) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == kNoSuchStore) {
      missing = true;
    } else if (status != 0) {
      failed = true;
    }
  }
  if (missing) {
    std::printf("skipped: redis-server is not installed here\n");
    return kNoSuchStore;
  }
  if (failed) {
    std::printf("FAILED: the attacker itself has died\n");
    return 1;
  }
  Tally all;
  for (uint64_t job = 0; job < options.jobs; ++job) {
    const Tally& one = tallies[job];
    all.runs += one.runs;
    all.calm += one.calm;
    all.split += one.split;
    all.imperfect += one.imperfect;
    all.together += one.together;
    all.errors += one.errors;
    all.deaths += one.deaths;
    all.calls += one.calls;
    all.learned += one.learned;
    all.eager += one.eager;
    all.taught += one.taught;
    if (all.first_bad == 0) all.first_bad = one.first_bad;
  }
  return Judge(options, all);
}

}  // namespace
}  // namespace diapason::attack

int main(int argc, char** argv) { return diapason::attack::Main(argc, argv); }
