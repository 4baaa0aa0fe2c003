// Does `diapason env tune` claim gains that are none, and does it find those there are? Whole
// tunings are simulated, in which a run takes a time that only noise and planted gains decide. Exit
// status 1 when more than 5 % of the null tunings of a kind of noise claim a gain or keep a
// setting, judged by the lower end of the 95 % interval.
//
//   bench_env_tune [--tunings N] [--power-tunings N] [--candidates M] [--seed S] [--abba]

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/stats.h"
#include "base/text.h"
#include "env_tune/experiment.h"
#include "report/table.h"

namespace diapason {
namespace {

using env_tune::EnvVars;
using env_tune::Experiment;
using env_tune::RunFigure;
using Align = report::Table::Align;

constexpr double kBar = 0.05;

enum class Noise { kGaussian, kHeavyTails, kDrift, kBimodal, kAutocorrelated };
constexpr const char* kNoiseNames[] = {"gaussian", "heavy tails", "drift", "bimodal",
                                       "autocorrelated"};

struct Options {
  int tunings = 2000;
  int power_tunings = 300;
  int candidates = 10;
  uint64_t seed = 1;
  bool abba = false;
};

// The log time of one run after the other; `level` is the standard deviation of a run, or the
// scale where there is none.
class NoiseSource {
 public:
  NoiseSource(Noise shape, double level, uint64_t seed)
      : shape_(shape), level_(level), random_(seed, 7) {}

  double Next() {
    const double normal = random_.Normal(count_ * 8);
    ++count_;
    switch (shape_) {
      case Noise::kGaussian:
        return level_ * normal;
      case Noise::kHeavyTails: {
        // Student's t with two degrees of freedom: no variance at all.
        double squares = 0;
        for (uint64_t i = 1; i <= 2; ++i) {
          const double other = random_.Normal((count_ - 1) * 8 + i);
          squares += other * other;
        }
        return level_ * normal / std::sqrt(squares / 2);
      }
      case Noise::kDrift:
        // A tenth of the time in a hundred runs, and a wave on top of it.
        return level_ * normal + 0.001 * static_cast<double>(count_) +
               2 * level_ * std::sin(static_cast<double>(count_) / 9);
      case Noise::kBimodal:
        // Every third run lands in a slow mode.
        return level_ * normal / 3 + (random_.Uniform(count_ * 8 + 3) < 0.33 ? 4 * level_ : 0);
      case Noise::kAutocorrelated:
        state_ = 0.9 * state_ + std::sqrt(1 - 0.81) * normal;
        return level_ * state_;
    }
    return 0;
  }

 private:
  Noise shape_;
  double level_;
  CounterRandom random_;
  uint64_t count_ = 0;
  double state_ = 0;
};

// One tuning. Candidates named in `gains` are faster by so much.
struct Tuning {
  bool claims = false;      // a gain is claimed in the end
  bool false_kept = false;  // something that changes nothing was kept
  bool found = false;       // claimed, with a planted setting in the set
  int runs = 0;
};
Tuning Simulate(const Options& options, Noise shape, double level, const std::vector<double>& gains,
                uint64_t seed) {
  env_tune::ExperimentOptions design;
  design.seed = seed;
  design.abba = options.abba;
  std::vector<env_tune::KnobValue> candidates;
  for (int i = 0; i < options.candidates; ++i) candidates.push_back({Format("K{}", i), "1", ""});
  Experiment experiment(design, candidates);
  NoiseSource noise(shape, level, MixBits(seed));
  while (const auto step = experiment.Next()) {
    double log_time = noise.Next();
    for (const auto& [name, value] : step->settings) {
      const size_t index = static_cast<size_t>(std::atoi(name.c_str() + 1));
      if (index < gains.size()) log_time -= std::log1p(gains[index]);
    }
    RunFigure figure;
    figure.fine = true;
    figure.value = std::exp(log_time);
    experiment.Tell(figure);
  }
  Tuning tuning;
  tuning.claims = !experiment.Final().empty();
  for (const auto& [name, value] : experiment.kept()) {
    const size_t index = static_cast<size_t>(std::atoi(name.c_str() + 1));
    const bool planted = index < gains.size() && gains[index] > 0;
    tuning.false_kept = tuning.false_kept || !planted;
    tuning.found = tuning.found || (planted && tuning.claims);
  }
  tuning.runs = experiment.runs();
  return tuning;
}

// Wilson's interval of a share, 95 %.
Interval ShareInterval(int hits, int of) {
  const double n = of;
  const double p = hits / n;
  const double z2 = 1.96 * 1.96;
  const double middle = (p + z2 / (2 * n)) / (1 + z2 / n);
  const double half = 1.96 / (1 + z2 / n) * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n));
  return {std::max(0.0, middle - half), middle + half};
}

std::string ShareText(int hits, int of) {
  const Interval interval = ShareInterval(hits, of);
  return Format("{:.2f} % [{:.2f}, {:.2f}]", 100.0 * hits / of, 100 * interval.low,
                100 * interval.high);
}

// False positives. `planted`: a first setting that does work, beside those that do not.
bool NullTunings(const Options& options, double planted) {
  std::vector<double> gains(1, planted);
  report::Table table(
      {"noise", "tunings", "gain claimed, none there", "useless setting kept", "runs (median)"});
  table.SetAlign({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  bool good = true;
  for (int shape = 0; shape < 5; ++shape) {
    int claims = 0;
    int kept = 0;
    std::vector<double> runs;
    for (int i = 0; i < options.tunings; ++i) {
      const uint64_t seed =
          MixBits(options.seed * 1000003 + static_cast<uint64_t>(shape * 10000000 + i) +
                  (planted > 0 ? 77777 : 0));
      const Tuning tuning = Simulate(options, static_cast<Noise>(shape), 0.03, gains, seed);
      claims += tuning.claims ? 1 : 0;
      kept += tuning.false_kept ? 1 : 0;
      runs.push_back(tuning.runs);
    }
    if (planted <= 0) good = good && ShareInterval(claims, options.tunings).low <= kBar;
    good = good && ShareInterval(kept, options.tunings).low <= kBar;
    table.Add({kNoiseNames[shape], Format("{}", options.tunings),
               planted > 0 ? "-" : ShareText(claims, options.tunings),
               ShareText(kept, options.tunings), Format("{:.0f}", Median(runs))});
  }
  std::printf("%s\n", table.Text().c_str());
  return good;
}

void Power(const Options& options) {
  report::Table table({"noise", "of a run", "gain", "found", "runs (median)", "runs (90 %)"});
  table.SetAlign(
      {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  for (const int shape : {0, 1, 4}) {
    for (const double level : {0.01, 0.03, 0.05}) {
      for (const double gain : {0.02, 0.05, 0.10, 0.20}) {
        // The planted one is in the middle of the list.
        std::vector<double> gains(static_cast<size_t>(options.candidates / 2) + 1, 0.0);
        gains.back() = gain;
        int found = 0;
        std::vector<double> runs;
        for (int i = 0; i < options.power_tunings; ++i) {
          const uint64_t seed = MixBits(options.seed * 77 + static_cast<uint64_t>(i) +
                                        static_cast<uint64_t>(shape * 1000000));
          const Tuning tuning = Simulate(options, static_cast<Noise>(shape), level, gains, seed);
          found += tuning.found ? 1 : 0;
          runs.push_back(tuning.runs);
        }
        table.Add({kNoiseNames[shape], Format("{:.0f} %", level * 100),
                   Format("{:.0f} %", gain * 100),
                   Format("{:.0f} %", 100.0 * found / options.power_tunings),
                   Format("{:.0f}", Median(runs)), Format("{:.0f}", Quantile(runs, 0.9))});
      }
    }
  }
  std::printf("%s", table.Text().c_str());
}

int Main(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--abba") {
      options.abba = true;
    } else if (i + 1 < count && word == "--tunings") {
      options.tunings = std::atoi(words[++i]);
    } else if (i + 1 < count && word == "--power-tunings") {
      options.power_tunings = std::atoi(words[++i]);
    } else if (i + 1 < count && word == "--candidates") {
      options.candidates = std::atoi(words[++i]);
    } else if (i + 1 < count && word == "--seed") {
      options.seed = std::strtoull(words[++i], nullptr, 10);
    } else {
      std::fprintf(stderr,
                   "usage: bench_env_tune [--tunings N] [--power-tunings N] [--candidates M] "
                   "[--seed S] [--abba]\n");
      return 2;
    }
  }
  if (options.tunings < 1 || options.power_tunings < 1 || options.candidates < 1) return 2;
  std::printf("simulated tunings of %d settings one after the other, blocks of %s\n\n",
              options.candidates, options.abba ? "four (ABBA or BAAB)" : "two");
  std::printf("nothing helps (noise of a run: 3 %%; [95 %% interval])\n");
  bool good = NullTunings(options, 0);
  std::printf("the first setting gains 10 %%, the others nothing\n");
  good = NullTunings(options, 0.10) && good;
  std::printf("one setting helps, in the middle of the list\n");
  Power(options);
  std::printf("\nfalse positives: %s (the bar is 5 %%)\n", good ? "within the bar" : "TOO MANY");
  return good ? 0 : 1;
}

}  // namespace
}  // namespace diapason

int main(int count, char** words) { return diapason::Main(count, words); }
