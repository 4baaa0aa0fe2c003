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
constexpr int kTogether = 20;
constexpr double kNoise = 0.05;  // of a round
constexpr double kHiccups = 0.03;
constexpr double kHiccup = 0.5;      // the logarithm
constexpr double kWorthARow = 1.02;  // as in src/tune

// What launches vary by need not be the same for all calls of a verification: by so much less or
// more, evenly, as a share of it.
constexpr double kUneven = 0.5;

struct Counts {
  int by_rounds = 0;  // by the median of all rounds, whatever launch they are of
  int by_check = 0;   // by the launches of the call alone
  int together = 0;   // by those of all calls that are verified together
};

bool IsRow(const measure::PolicyCheck& check) {
  return check.verdict == measure::PolicyVerdict::kFaster && check.gain >= kWorthARow;
}

measure::PolicyCheck MadeUp(int launches, int rounds, double gain, double variation,
                            const CounterRandom& random) {
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
  return check;
}

// How often of kRuns a gain is called faster; kTogether calls are verified on the same launches.
Counts Faster(int launches, int rounds, double gain, double variation) {
  Counts counts;
  std::vector<measure::PolicyCheck> checks;
  for (int run = 0; run < kRuns; ++run) {
    const double share = static_cast<double>(run % kTogether) / (kTogether - 1);
    const double own = variation * (1 - kUneven + 2 * kUneven * share);
    checks.push_back(MadeUp(launches, rounds, gain, own, {static_cast<uint64_t>(run) + 1, 31}));
    measure::PolicyCheck& check = checks.back();
    const Interval pooled = MedianInterval95(check.gains);
    counts.by_rounds += pooled.low > 1 && Median(check.gains) >= kWorthARow ? 1 : 0;
    check.Conclude();
    counts.by_check += IsRow(check) ? 1 : 0;
    if (checks.size() < kTogether) continue;
    const measure::LaunchVariation usual = measure::VariationOfLaunches(checks);
    for (measure::PolicyCheck& one : checks) {
      one.Conclude(usual);
      counts.together += IsRow(one) ? 1 : 0;
    }
    checks.clear();
  }
  return counts;
}

}  // namespace

void PrintLaunches() {
  report::Table table({"launches x rounds", "launches vary by", "no gain: faster", "one call alone",
                       "by rounds alone", "1.05 x: faster", "one call alone", "by rounds alone",
                       "1.15 x: faster", "one call alone", "by rounds alone"});
  table.SetAlign(std::vector<report::Table::Align>(11, report::Table::Align::kRight));
  for (const auto& [launches, rounds] : {std::pair(2, 9), std::pair(4, 6), std::pair(8, 4)}) {
    for (const double variation : {0.0, 0.02, 0.05, 0.10}) {
      std::vector<std::string> cells = {Format("{} x {}", launches, rounds),
                                        Format("{:.0f} %", 100 * variation)};
      for (const double gain : {1.0, 1.05, 1.15}) {
        const Counts counts = Faster(launches, rounds, gain, variation);
        for (const int count : {counts.together, counts.by_check, counts.by_rounds}) {
          cells.push_back(Format("{:.1f} %", 100.0 * count / kRuns));
        }
      }
      table.Add(std::move(cells));
    }
  }
  std::printf(
      "\ngains of which launches differ, %d made-up verifications each, %d at a time; noise of a "
      "round %.0f %%, hiccups %.0f %%\n%s",
      kRuns, kTogether, 100 * kNoise, 100 * kHiccups, table.Text().c_str());
}

}  // namespace diapason::bench
