// How gains are judged whose launches differ: rounds in several launches of two configurations,
// whose gain is the same in all rounds of a launch but for noise, and varies from launch to launch.
// Nothing is measured. Printed by bench_tune_played.
#include "launches.h"

#include <cmath>
#include <cstdio>

#include "base/random.h"
#include "base/stats.h"
#include "base/text.h"
#include "measure/policy_check.h"
#include "report/table.h"

namespace diapason::bench {
namespace {

constexpr int kRuns = 2000;
constexpr double kNoise = 0.05;  // of a round
constexpr double kHiccups = 0.03;
constexpr double kHiccup = 0.5;      // the logarithm
constexpr double kWorthARow = 1.02;  // as in src/tune

struct Counts {
  int by_rounds = 0;  // by the median of all rounds, whatever launch they are of
  int by_check = 0;
};

// How often of kRuns a gain is called faster.
Counts Faster(int launches, int rounds, double gain, double variation) {
  Counts counts;
  for (int run = 0; run < kRuns; ++run) {
    const CounterRandom random(static_cast<uint64_t>(run) + 1, 31);
    uint64_t draw = 0;
    const auto normal = [&] { return random.Normal(2 * draw++); };
    measure::PolicyCheck check;
    for (int launch = 0; launch < launches; ++launch) {
      const double own = std::log(gain) + variation * normal();
      for (int round = 0; round < rounds; ++round) {
        double noise = kNoise * normal();
        const double hiccup = random.Uniform((uint64_t{1} << 32) + draw);
        if (hiccup < kHiccups) noise += hiccup < kHiccups / 2 ? kHiccup : -kHiccup;
        check.gains.push_back(std::exp(own + noise));
        check.launches.push_back(launch + 1);
      }
    }
    const Interval pooled = MedianInterval95(check.gains);
    counts.by_rounds += pooled.low > 1 && Median(check.gains) >= kWorthARow ? 1 : 0;
    check.Conclude();
    counts.by_check +=
        check.verdict == measure::PolicyVerdict::kFaster && check.gain >= kWorthARow ? 1 : 0;
  }
  return counts;
}

}  // namespace

void PrintLaunches() {
  report::Table table({"launches x rounds", "launches vary by", "no gain: faster",
                       "by rounds alone", "1.05 x: faster", "by rounds alone", "1.15 x: faster",
                       "by rounds alone"});
  table.SetAlign(std::vector<report::Table::Align>(8, report::Table::Align::kRight));
  for (const auto& [launches, rounds] : {std::pair(2, 9), std::pair(4, 6), std::pair(8, 4)}) {
    for (const double variation : {0.0, 0.02, 0.05, 0.10}) {
      std::vector<std::string> cells = {Format("{} x {}", launches, rounds),
                                        Format("{:.0f} %", 100 * variation)};
      for (const double gain : {1.0, 1.05, 1.15}) {
        const Counts counts = Faster(launches, rounds, gain, variation);
        cells.push_back(Format("{:.1f} %", 100.0 * counts.by_check / kRuns));
        cells.push_back(Format("{:.1f} %", 100.0 * counts.by_rounds / kRuns));
      }
      table.Add(std::move(cells));
    }
  }
  std::printf(
      "\ngains of which launches differ, %d made-up verifications each; noise of a round %.0f %%, "
      "hiccups %.0f %%\n%s",
      kRuns, 100 * kNoise, 100 * kHiccups, table.Text().c_str());
}

}  // namespace diapason::bench
