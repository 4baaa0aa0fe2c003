#include "model/gap.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace diapason::model {
namespace {

// What is usual: the variance of three machines' grids lies around this. It counts as much as this
// many sizes.
constexpr double kUsualUnit = 0.15;
constexpr double kUsualWorth = 2;
// Configurations whose interpolated gain is this close to the best may be chosen; the errors of
// others do not matter.
constexpr double kClose = 0.2;

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

double UnitOf(const MeasuredPlace& scene, GapOf of) {
  double sum = kUsualWorth * kUsualUnit * kUsualUnit;
  double count = kUsualWorth;
  for (size_t i = 1; i + 1 < scene.contexts.size(); ++i) {
    std::vector<Miss> misses;
    double best = -HUGE_VAL;
    for (const MeasuredConfig& cell : scene.contexts[i].cells) {
      if (cell.config.IsDefault()) continue;
      const std::optional<Miss> miss =
          MissOf(scene.contexts[i - 1], scene.contexts[i], scene.contexts[i + 1], cell.config, of);
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
    // once.
    sum += squares / close;
    ++count;
  }
  return std::sqrt(std::max(0.0, sum) / count);
}

}  // namespace

double GapUnit(const MeasuredPlace& scene) { return UnitOf(scene, GapOf::kGain); }
double TimeGapUnit(const MeasuredPlace& scene) { return UnitOf(scene, GapOf::kTime); }

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
