#include "model/evidence.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace diapason::model {
namespace {

constexpr size_t kLeastSamples = 2;
constexpr int kSteps = 20;

struct SizeTest {
  CallPlace place;
  const MeasuredSize* context = nullptr;
  std::vector<std::pair<double, const MeasuredConfig*>> cells;  // p-values
  double least = 1;
};

SizeTest TestSize(const MeasuredPlace& scene, const MeasuredSize& context) {
  SizeTest test{scene.place, &context, {}, 1};
  if (!context.library_default.has_value()) return test;
  const MeasuredConfig& library_default = context.cells[*context.library_default];
  const size_t candidates = context.cells.size() - 1;
  for (const MeasuredConfig& cell : context.cells) {
    if (cell.config.IsDefault()) continue;
    const double p = GainP(scene.tail, library_default, cell, candidates);
    test.cells.emplace_back(p, &cell);
    test.least = std::min(test.least, p);
  }
  return test;
}

// The largest p-value that Benjamini and Hochberg's rule rejects; negative: none.
double Threshold(std::vector<double> p, double alpha) {
  std::sort(p.begin(), p.end());
  const auto count = static_cast<double>(p.size());
  for (size_t k = p.size(); k > 0; --k) {
    const double limit = alpha * static_cast<double>(k) / count;
    if (p[k - 1] <= limit) return limit;
  }
  return -1;
}

// The probability of `least` or more of `count` independent events, each of this probability.
double AtLeast(size_t least, size_t count, double each) {
  double term = std::pow(each, static_cast<double>(count));
  double sum = 0;
  for (size_t k = count + 1; k-- > least;) {
    sum += term;
    term *= static_cast<double>(k) / static_cast<double>(count - k + 1) * (1 - each) / each;
  }
  return std::min(1.0, sum);
}

// The probability that fewer than TestRank of these samples are below their true median.
double HalfTail(size_t samples) { return AtLeast(samples - TestRank(samples) + 1, samples, 0.5); }

struct OverallTest {
  CallPlace place;
  ConfigFamily family;
  double p = 1;
};

// Whether a configuration is faster at so many sizes of a place that it cannot be luck: the samples
// of both sides are apart (TestRank), whatever their distance and distribution. If the medians are
// equal, they are apart at one size with a probability of at most HalfTail, as far as either side
// alone has noise.
std::vector<OverallTest> TestOverall(const MeasuredPlace& scene) {
  struct Tally {
    size_t sizes = 0;
    size_t apart = 0;
    double each = 0;
  };
  std::map<Config, Tally, decltype(&ConfigLess)> tallies(&ConfigLess);
  for (const MeasuredSize& context : scene.contexts) {
    if (!context.library_default.has_value()) continue;
    const MeasuredConfig& own = context.cells[*context.library_default];
    if (own.samples < kLeastSamples) continue;
    for (const MeasuredConfig& cell : context.cells) {
      if (cell.config.IsDefault() || cell.samples < kLeastSamples || !cell.paired) continue;
      Tally& tally = tallies[cell.config];
      ++tally.sizes;
      const double gain =
          own.test_fast - cell.test_slow - std::log1p(own.coarse) - std::log1p(cell.coarse);
      if (gain > 0) ++tally.apart;
      tally.each = std::max({tally.each, HalfTail(own.samples), HalfTail(cell.samples)});
    }
  }
  std::vector<OverallTest> tests;
  for (const auto& [config, tally] : tallies) {
    tests.push_back({scene.place, FamilyOf(config), AtLeast(tally.apart, tally.sizes, tally.each)});
  }
  return tests;
}

}  // namespace

double GainP(const NoiseTail& tail, const MeasuredConfig& library_default,
             const MeasuredConfig& cell, size_t candidates) {
  if (library_default.samples < kLeastSamples || cell.samples < kLeastSamples || !cell.paired) {
    return 1;
  }
  const double gain = library_default.test_fast - cell.test_slow -
                      std::log1p(library_default.coarse) - std::log1p(cell.coarse);
  if (!(gain > 0)) return 1;
  const auto unlucky = [&](double share) {
    return TestTail(tail, NoiseTail::kSlow, library_default.samples, share / library_default.scale);
  };
  const auto lucky = [&](double share) {
    return TestTail(tail, NoiseTail::kFast, cell.samples, share / cell.scale);
  };
  // The probability that both together are off by the gain, for this configuration alone.
  double alone = unlucky(2 * gain) + (1 - unlucky(-gain)) * lucky(2 * gain);
  double above = unlucky(-gain);
  for (int step = -kSteps; step < 2 * kSteps; ++step) {
    const double next = gain * (step + 1) / kSteps;
    const double here = unlucky(next);
    alone += std::max(0.0, above - here) * lucky(gain - next);
    above = here;
  }
  const auto count = static_cast<double>(candidates);
  double p = std::min(1.0, count * alone);
  // With many configurations: the library's own choice, which they share, was unlucky by some share
  // of the gain, or one of them lucky by the rest.
  for (int step = 1; candidates > 1 && step < kSteps; ++step) {
    const double share = gain * step / kSteps;
    p = std::min(p, unlucky(share) + count * lucky(gain - share));
  }
  return p;
}

Evidence::Evidence(const Grid& grid, double alpha) {
  std::vector<SizeTest> tests;
  std::vector<double> least;
  for (const MeasuredPlace& scene : grid.scenes) {
    for (const MeasuredSize& context : scene.contexts) {
      tests.push_back(TestSize(scene, context));
      least.push_back(tests.back().least);
    }
  }
  std::vector<OverallTest> overall;
  std::vector<double> p_overall;
  for (const MeasuredPlace& scene : grid.scenes) {
    for (const OverallTest& test : TestOverall(scene)) {
      overall.push_back(test);
      p_overall.push_back(test.p);
    }
  }
  const double overall_threshold = Threshold(std::move(p_overall), alpha / 2);
  for (const OverallTest& test : overall) {
    if (test.p <= overall_threshold) places_[test.place].families.insert(test.family);
  }
  const double threshold = Threshold(std::move(least), alpha / 2);
  for (const SizeTest& test : tests) {
    if (test.least > threshold) continue;
    ++sizes_;
    PlaceEvidence& place = places_[test.place];
    for (const auto& [p, cell] : test.cells) {
      if (p > threshold) continue;
      place.proven[test.context->bytes].push_back(cell->config);
      place.families.insert(FamilyOf(cell->config));
    }
  }
}

bool Evidence::Proven(const CallPlace& place, uint64_t bytes, const Config& config) const {
  const auto found = places_.find(place);
  if (found == places_.end()) return false;
  const auto at = found->second.proven.find(bytes);
  return at != found->second.proven.end() &&
         std::find(at->second.begin(), at->second.end(), config) != at->second.end();
}

bool Evidence::FamilyProven(const CallPlace& place, const ConfigFamily& family) const {
  const auto found = places_.find(place);
  return found != places_.end() && found->second.families.count(family) > 0;
}

bool Evidence::FamilyKnown(Collective collective, const ConfigFamily& family) const {
  return std::any_of(places_.begin(), places_.end(), [&](const auto& place) {
    return place.first.collective == collective && place.second.families.count(family) > 0;
  });
}

}  // namespace diapason::model
