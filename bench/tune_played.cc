// How well `tune` covers the sizes between those it measures, on a played machine whose best
// configurations are known. Nothing is measured: the machine's clock is played too, so that a
// budget of minutes takes seconds.
//
//   bench_tune_played [--seeds 3] [--only 4|8|launches] [--between 0]
//
// Bars: at sizes between the tuned ones at least 0.95 of the best in the geometric mean and none
// below 0.97 of the default; at tuned sizes 0.98 of the best with 4 ranks and 0.97 with 8; the
// budget is kept.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/stats.h"
#include "base/text.h"
#include "launches.h"
#include "report/table.h"
#include "tune/played_tuning.h"

namespace {

using diapason::Format;
using diapason::report::Table;
using diapason::tune::PlayedMachine;
using diapason::tune::PlayedResult;

struct Ground {
  const char* name;
  double budget;
  double at_tuned;  // the bar
  PlayedMachine::Traits traits;
};

const Ground kGrounds[] = {
    {"4 ranks, quiet launches", 240, 0.98, {.ranks = 4}},
    {"4 ranks, launches differ by 3 %", 240, 0.98, {.ranks = 4, .launch_noise = 0.03}},
    {"8 ranks, blocks 10 %, launches 4 %",
     360,
     0.97,
     {.ranks = 8, .noise = 0.10, .launch_noise = 0.04}},
};

}  // namespace

int main(int count, char** words) {
  int seeds = 3;
  int only = 0;
  bool launches = true;
  bool grounds = true;
  bool between = true;
  for (int i = 1; i + 1 < count; i += 2) {
    if (std::strcmp(words[i], "--seeds") == 0) seeds = std::atoi(words[i + 1]);
    if (std::strcmp(words[i], "--between") == 0) between = std::atoi(words[i + 1]) != 0;
    if (std::strcmp(words[i], "--only") == 0) {
      grounds = std::strcmp(words[i + 1], "launches") != 0;
      launches = !grounds;
      only = std::atoi(words[i + 1]);
    }
  }
  if (launches) diapason::bench::PrintLaunches();
  if (!grounds) return 0;
  Table table({"played machine", "seed", "tuned: of the best", "between: of the best",
               "between: worst of the default", "between: default of the best", "seconds",
               "channel cap", "bars"});
  bool all = true;
  for (const Ground& ground : kGrounds) {
    if (only != 0 && ground.traits.ranks != only) continue;
    for (int seed = 1; seed <= seeds; ++seed) {
      PlayedMachine::Traits traits = ground.traits;
      traits.seed = static_cast<uint64_t>(seed);
      diapason::tune::PlayedPlan plan;
      plan.budget = ground.budget;
      plan.between = between;
      // Every sample is written before the next: in memory, a disk would be all that is timed.
      const bool memory = std::filesystem::is_directory("/dev/shm");
      plan.store =
          Format("{}/diapason_played_{}_{}.db", memory ? "/dev/shm" : "/tmp", ::getpid(), seed);
      const diapason::Result<PlayedResult> tuned = diapason::tune::PlayTuning(traits, plan);
      std::error_code ignored;
      std::filesystem::remove(plan.store, ignored);
      if (!tuned.ok()) {
        std::fprintf(stderr, "bench_tune_played: %s\n", tuned.status().message().c_str());
        return 1;
      }
      const PlayedResult& result = tuned.value();
      const bool met = result.at_tuned >= ground.at_tuned && result.between >= 0.95 &&
                       result.worst_of_default >= 0.97 && result.seconds <= ground.budget * 1.02;
      all = all && met;
      table.Add({ground.name, std::to_string(seed), Format("{:.3f}", result.at_tuned),
                 Format("{:.3f}", result.between), Format("{:.3f}", result.worst_of_default),
                 Format("{:.3f}", result.default_between), Format("{:.0f}", result.seconds),
                 std::to_string(result.outcome.channel_cap), met ? "met" : "missed"});
      std::fprintf(stderr, "%s, seed %d: worst of the default at %s\n", ground.name, seed,
                   result.worst_at.c_str());
    }
  }
  std::printf("\neverything here is played; nothing was measured\n%s", table.Text().c_str());
  return all ? 0 : 1;
}
