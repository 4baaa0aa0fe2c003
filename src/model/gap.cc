#include "model/gap.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "base/normal.h"
#include "base/stats.h"
#include "model/held_out.h"

namespace diapason::model {
namespace {

// What is usual: the variance of three machines' grids lies around this. It counts as much as this
// many sizes.
constexpr double kUsualUnit = 0.15;
constexpr double kUsualWorth = 2;
// Configurations whose interpolated gain is this close to the best may be chosen; the errors of
// others do not matter.
constexpr double kClose = 0.2;
// Noise of this many units of a doubling makes a smoothed gain better than the measured one.
constexpr double kMuchNoise = 0.3;
// The pairs of sizes that say how far estimates hold beyond an end.
constexpr size_t kEndPairs = 3;
// The least factor by which an error falls with half the distance, beside that of a random walk.
constexpr double kSmoothest = 0.35;

// The time of the library's own choice relative to a configuration's, with the noise of both; or
// the inverse of the configuration's time alone.
struct GapValue {
  double log = 0;
  double variance = 0;
};
enum class GapOf { kGain, kTime };

std::optional<GapValue> ValueAt(const MeasuredSize& context, const Config& config, GapOf of) {
  const MeasuredConfig* const alone = context.Find(config);
  if (of == GapOf::kTime) {
    if (alone == nullptr) return {};
    return GapValue{-alone->log_seconds, alone->noise * alone->noise};
  }
  if (!context.library_default.has_value()) return {};
  const MeasuredConfig& other = context.cells[*context.library_default];
  if (alone == nullptr) return {};
  return GapValue{other.log_seconds - alone->log_seconds,
                  other.noise * other.noise + alone->noise * alone->noise};
}

struct Miss {
  double expected = 0;
  double square = 0;  // of the deviation, without the noise, per unit of variance
};

std::optional<Miss> MissOf(const MeasuredSize& low, const MeasuredSize& middle,
                           const MeasuredSize& high, const Config& config, GapOf of) {
  const std::optional<GapValue> below = ValueAt(low, config, of);
  const std::optional<GapValue> here = ValueAt(middle, config, of);
  const std::optional<GapValue> above = ValueAt(high, config, of);
  if (!below.has_value() || !here.has_value() || !above.has_value()) return {};
  const double span = LogBytes(high.bytes) - LogBytes(low.bytes);
  const double weight = (LogBytes(middle.bytes) - LogBytes(low.bytes)) / span;
  Miss miss;
  miss.expected = (1 - weight) * below->log + weight * above->log;
  const double off = here->log - miss.expected;
  const double noise = here->variance + (1 - weight) * (1 - weight) * below->variance +
                       weight * weight * above->variance;
  miss.square = (off * off - noise) / (span / std::numbers::ln2 * weight * (1 - weight));
  return miss;
}

double UnitOf(const MeasuredPlace& scene) {
  double sum = kUsualWorth * kUsualUnit * kUsualUnit;
  double count = kUsualWorth;
  for (size_t i = 1; i + 1 < scene.contexts.size(); ++i) {
    std::vector<Miss> misses;
    double best = -HUGE_VAL;
    for (const MeasuredConfig& cell : scene.contexts[i].cells) {
      if (cell.config.IsDefault()) continue;
      const std::optional<Miss> miss = MissOf(scene.contexts[i - 1], scene.contexts[i],
                                              scene.contexts[i + 1], cell.config, GapOf::kGain);
      if (!miss.has_value()) continue;
      misses.push_back(*miss);
      best = std::max(best, miss->expected);
    }
    double squares = 0;
    double close = 0;
    for (const Miss& miss : misses) {
      if (miss.expected < best - kClose) continue;
      squares += miss.square;
      ++close;
    }
    if (close == 0) continue;
    // The configurations of a size deviate together, with the library's own choice: a size counts
    // once. Less than the noise is no deviation; it does not make up for those of other sizes.
    sum += std::max(0.0, squares / close);
    ++count;
  }
  return std::sqrt(std::max(0.0, sum) / count);
}

// The magnitude that 90 % of the deviations of times do not exceed, as a standard deviation, where
// each size is interpolated from those `step` sizes away; and how many sizes there were.
struct TimeMiss {
  double error = 0;
  size_t sizes = 0;
};
TimeMiss TimeMissAt(const MeasuredPlace& scene, size_t step) {
  std::vector<double> misses;
  TimeMiss found;
  for (size_t i = step; i + step < scene.contexts.size(); ++i) {
    const size_t before = misses.size();
    for (const MeasuredConfig& cell : scene.contexts[i].cells) {
      const std::optional<Miss> miss = MissOf(scene.contexts[i - step], scene.contexts[i],
                                              scene.contexts[i + step], cell.config, GapOf::kTime);
      if (miss.has_value()) misses.push_back(std::sqrt(std::max(0.0, miss->square)));
    }
    if (misses.size() > before) ++found.sizes;
  }
  found.error = NinetyPercentDeviation(std::move(misses));
  return found;
}

// The deviation of one doubling at an end of the sizes, from the last pairs there.
double EndUnit(const MeasuredPlace& scene, bool top, GapOf of) {
  std::vector<double> steps;
  size_t pairs = 0;
  for (size_t k = 0; k < kEndPairs && k + 1 < scene.contexts.size(); ++k) {
    const size_t low = top ? scene.contexts.size() - 2 - k : k;
    const MeasuredSize& inner = scene.contexts[top ? low : low + 1];
    const MeasuredSize& outer = scene.contexts[top ? low + 1 : low];
    const double doublings =
        std::fabs(LogBytes(outer.bytes) - LogBytes(inner.bytes)) / std::numbers::ln2;
    const size_t before = steps.size();
    for (const MeasuredConfig& cell : outer.cells) {
      if (of == GapOf::kGain && cell.config.IsDefault()) continue;
      const std::optional<GapValue> here = ValueAt(inner, cell.config, of);
      const std::optional<GapValue> there = ValueAt(outer, cell.config, of);
      if (!here.has_value() || !there.has_value()) continue;
      double off = there->log - here->log;
      // Larger messages have the bandwidth of the largest.
      if (of == GapOf::kTime && top) off += doublings * std::numbers::ln2;
      steps.push_back(std::fabs(off) / doublings);
    }
    if (steps.size() > before) ++pairs;
  }
  const auto known = static_cast<double>(pairs);
  const double found = pairs == 0 ? 0
                                  : NinetyPercentDeviation(std::move(steps)) *
                                        StudentQuantile(0.95, known) / StudentQuantile(0.95, 1e6);
  return std::sqrt((known * found * found + kUsualUnit * kUsualUnit) / (known + 1));
}

// The gain of a configuration at a size.
struct WalkStep {
  size_t context = 0;
  double noise = 0;   // variance of the measured gain
  double before = 0;  // variance as the sizes below predict it
  double gain = 0;
  double variance = 0;
};

std::vector<WalkStep> SmoothWalk(const MeasuredPlace& scene, const Config& config, double unit) {
  std::vector<WalkStep> steps;
  for (size_t i = 0; i < scene.contexts.size(); ++i) {
    const MeasuredSize& context = scene.contexts[i];
    const std::optional<GapValue> seen = ValueAt(context, config, GapOf::kGain);
    if (!seen.has_value() || !context.Find(config)->paired) continue;
    WalkStep step{i, seen->variance, 0, seen->log, seen->variance};
    if (!steps.empty()) {
      const WalkStep& last = steps.back();
      const double apart = LogBytes(context.bytes) - LogBytes(scene.contexts[last.context].bytes);
      step.before = last.variance + unit * unit * apart / std::numbers::ln2;
      const double share = step.before / (step.before + step.noise);
      step.gain = last.gain + share * (seen->log - last.gain);
      step.variance = step.before * (1 - share);
    }
    steps.push_back(step);
  }
  for (size_t k = steps.size(); k-- > 1;) {
    const WalkStep& above = steps[k];
    WalkStep& here = steps[k - 1];
    const double share = here.variance / above.before;
    here.gain += share * (above.gain - here.gain);
    here.variance += share * share * (above.variance - above.before);
  }
  return steps;
}

}  // namespace

double GapUnit(const MeasuredPlace& scene) { return UnitOf(scene); }

double TimeGapUnit(const MeasuredPlace& scene) {
  const TimeMiss near = TimeMissAt(scene, 1);
  const TimeMiss far = TimeMissAt(scene, 2);
  double found = near.error;
  // Hidden sizes are twice as far from their neighbours as sizes between these are. How the error
  // falls with the distance is seen from there to four times the distance; as a random walk at
  // least.
  if (near.error > 0 && far.error > near.error) {
    found *= std::clamp(near.error / far.error, kSmoothest, 1.0);
  }
  const auto known = static_cast<double>(near.sizes);
  return std::sqrt((known * found * found + kUsualWorth * kUsualUnit * kUsualUnit) /
                   (known + kUsualWorth));
}

EndUnits EndUnitsOf(const MeasuredPlace& scene) {
  EndUnits units;
  for (const bool top : {false, true}) {
    units.gain[top ? 1 : 0] = EndUnit(scene, top, GapOf::kGain);
    units.time[top ? 1 : 0] = EndUnit(scene, top, GapOf::kTime);
  }
  return units;
}

bool NoiseHidesSteps(const MeasuredPlace& scene, double unit) {
  std::vector<double> noise;
  for (const MeasuredSize& context : scene.contexts) {
    for (const MeasuredConfig& cell : context.cells) {
      if (cell.config.IsDefault()) continue;
      const std::optional<GapValue> gain = ValueAt(context, cell.config, GapOf::kGain);
      if (gain.has_value()) noise.push_back(std::sqrt(gain->variance));
    }
  }
  return !noise.empty() && Median(noise) > kMuchNoise * unit;
}

MeasuredPlace Smoothed(const MeasuredPlace& scene, double unit) {
  MeasuredPlace smooth = scene;
  std::set<Config, decltype(&ConfigLess)> configs(&ConfigLess);
  for (const MeasuredSize& context : scene.contexts) {
    for (const MeasuredConfig& cell : context.cells) {
      if (!cell.config.IsDefault() && cell.paired) configs.insert(cell.config);
    }
  }
  // The least that the noise of a size falls by, for the library's own choice.
  std::vector<double> noisiest(scene.contexts.size(), 0);
  for (const Config& config : configs) {
    for (const WalkStep& step : SmoothWalk(scene, config, unit)) {
      MeasuredSize& context = smooth.contexts[step.context];
      const MeasuredConfig& own = context.cells[*context.library_default];
      MeasuredConfig& cell = context.cells[static_cast<size_t>(
          scene.contexts[step.context].Find(config) - scene.contexts[step.context].cells.data())];
      const double less = std::sqrt(std::max(0.0, step.variance) / step.noise);
      cell.log_seconds = own.log_seconds - step.gain;
      cell.noise *= less;
      noisiest[step.context] = std::max(noisiest[step.context], less);
    }
  }
  for (size_t i = 0; i < smooth.contexts.size(); ++i) {
    MeasuredSize& context = smooth.contexts[i];
    if (noisiest[i] > 0) context.cells[*context.library_default].noise *= noisiest[i];
  }
  return smooth;
}

double GapError(double unit, double weight, double doublings) {
  return unit * std::sqrt(std::max(0.0, doublings * weight * (1 - weight)));
}

double BeyondError(double unit, double doublings) {
  const double distance = std::fabs(doublings);
  return unit * std::max(std::sqrt(distance), distance);
}

double Surrounding::Reach(uint64_t bytes) const {
  const double log = LogBytes(bytes);
  return std::exp(
      std::min(std::fabs(log - LogBytes(below->bytes)), std::fabs(log - LogBytes(above->bytes))));
}

std::optional<Surrounding> Surround(const MeasuredPlace& scene, uint64_t bytes,
                                    const Config& config) {
  Surrounding between;
  for (const MeasuredSize& context : scene.contexts) {
    if (!ValueAt(context, config, GapOf::kGain).has_value()) continue;
    if (context.bytes <= bytes) between.below = &context;
    if (context.bytes >= bytes) {
      between.above = &context;
      break;
    }
  }
  if (between.below == nullptr || between.above == nullptr) return {};
  if (between.below == between.above) return between;
  const double low = LogBytes(between.below->bytes);
  const double high = LogBytes(between.above->bytes);
  between.weight = (LogBytes(bytes) - low) / (high - low);
  between.doublings = (high - low) / std::numbers::ln2;
  return between;
}

}  // namespace diapason::model
