#include "model/size_evidence.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/random.h"
#include "base/stats.h"
#include "model/local_model.h"

namespace diapason::model {
namespace {

constexpr size_t kLeastSamples = 2;
// Fewer comparisons say more about the tail of the noise than few samples know.
constexpr size_t kLeastComparisons = 3;
// How much a gain usually changes with a doubling of the size, for predicting the next.
constexpr double kUsualStep = 0.15;
// What is predicted to be faster by less is not compared.
constexpr double kLeastPredicted = 0.02;
constexpr double kMostScore = 5;
constexpr size_t kDraws = 20000;
// So many draws above the sum found tell a p-value well enough.
constexpr size_t kEnough = 50;
constexpr size_t kMedians = 4096;

// What the sizes so far say about the gain of a configuration.
struct Forecast {
  double gain = 0;
  double variance = HUGE_VAL;
  double at = 0;  // logarithm of the size

  void Learn(double seen, double noise, double log_bytes) {
    if (std::isinf(variance)) {
      *this = {seen, noise, log_bytes};
      return;
    }
    variance += kUsualStep * kUsualStep * std::fabs(log_bytes - at) / std::numbers::ln2;
    const double share = variance / (variance + noise);
    gain += share * (seen - gain);
    variance *= 1 - share;
    at = log_bytes;
  }
};

double Square(double value) { return value * value; }

// In standard errors; what the rounding of printed digits can add does not count.
double UnitOf(const MeasuredConfig& own, const MeasuredConfig& cell) {
  return Together(own.scale / std::sqrt(static_cast<double>(own.samples)),
                  cell.scale / std::sqrt(static_cast<double>(cell.samples)));
}

bool Usable(const MeasuredConfig& cell, const ConfigFamily* family) {
  return !cell.config.IsDefault() && cell.samples >= kLeastSamples && cell.paired &&
         (family == nullptr || FamilyOf(cell.config) == *family);
}

}  // namespace

std::vector<SizeEvidence::Comparison> SizeEvidence::Compare(bool up,
                                                            const ConfigFamily* family) const {
  std::map<Config, Forecast, decltype(&ConfigLess)> forecasts(&ConfigLess);
  std::vector<Comparison> pairs;
  for (size_t i = 0; i < scene_.contexts.size(); ++i) {
    const MeasuredSize& context = scene_.contexts[up ? i : scene_.contexts.size() - 1 - i];
    if (!context.library_default.has_value()) continue;
    const MeasuredConfig& own = context.cells[*context.library_default];
    if (own.samples < kLeastSamples) continue;
    const MeasuredConfig* chosen = nullptr;
    double best = std::log1p(kLeastPredicted);
    for (const MeasuredConfig& cell : context.cells) {
      if (!Usable(cell, family)) continue;
      const auto known = forecasts.find(cell.config);
      if (known == forecasts.end() || known->second.gain <= best) continue;
      best = known->second.gain;
      chosen = &cell;
    }
    if (chosen != nullptr) pairs.push_back({&own, chosen});
    for (const MeasuredConfig& cell : context.cells) {
      if (!Usable(cell, family)) continue;
      forecasts[cell.config].Learn(own.log_seconds - cell.log_seconds,
                                   Square(own.noise) + Square(cell.noise), LogBytes(context.bytes));
    }
  }
  return pairs;
}

const std::vector<double>& SizeEvidence::NoiseOfMedian(size_t samples) {
  std::vector<double>& medians = medians_[samples];
  if (!medians.empty()) return medians;
  const std::vector<double>& pool = scene_.tail.residuals();
  const CounterRandom random(samples, 1);
  std::vector<double> drawn(samples);
  uint64_t index = 0;
  for (size_t k = 0; k < kMedians; ++k) {
    for (double& one : drawn) one = pool[random.Bits(index++) % pool.size()];
    medians.push_back(Median(drawn));
  }
  return medians;
}

double SizeEvidence::PairsP(const std::vector<Comparison>& pairs) {
  if (pairs.size() < kLeastComparisons || scene_.tail.residuals().empty()) return 1;
  struct Side {
    double scale = 0;
    const std::vector<double>* medians = nullptr;
  };
  std::vector<std::pair<Side, Side>> sides;
  const auto score = [](double value) { return std::clamp(value, -kMostScore, kMostScore); };
  double found = 0;
  for (const auto& [own, chosen] : pairs) {
    const double unit = UnitOf(*own, *chosen);
    const double gain = own->log_seconds - chosen->log_seconds - std::log1p(own->coarse) -
                        std::log1p(chosen->coarse);
    found += score(gain / unit);
    sides.push_back({{own->scale / unit, &NoiseOfMedian(own->samples)},
                     {chosen->scale / unit, &NoiseOfMedian(chosen->samples)}});
  }
  if (found <= 0) return 1;
  const CounterRandom random(pairs.size(), 2);
  uint64_t index = 0;
  size_t above = 0;
  size_t draw = 0;
  while (draw < kDraws && above < kEnough) {
    double sum = 0;
    for (const auto& [own, chosen] : sides) {
      const uint64_t bits = random.Bits(index++);
      sum += score(own.scale * (*own.medians)[bits % kMedians] -
                   chosen.scale * (*chosen.medians)[(bits >> 32) % kMedians]);
    }
    above += sum >= found ? 1 : 0;
    ++draw;
  }
  return static_cast<double>(above + 1) / static_cast<double>(draw + 1);
}

double SizeEvidence::P(const ConfigFamily* family) {
  const double up = PairsP(Compare(true, family));
  const double down = PairsP(Compare(false, family));
  return std::min(1.0, 2 * std::min(up, down));
}

}  // namespace diapason::model
