#include "model/evidence.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/size_evidence.h"

namespace diapason::model {
namespace {

constexpr size_t kLeastSamples = 2;
constexpr int kSteps = 20;
// The shares of `alpha` of the two tests, one size alone and all together. They add up to less than
// 1, because both take the noise of a place from few samples.
constexpr double kAloneShare = 0.25;
constexpr double kTogetherShare = 0.3;

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

struct PlaceTest {
  CallPlace place;
  double p = 1;
  std::map<ConfigFamily, double> families;
};

// By all sizes together; families are tested where the place as a whole may be proven.
PlaceTest TestPlace(const MeasuredPlace& scene, double alpha) {
  SizeEvidence sizes(scene);
  PlaceTest test{scene.place, sizes.P(), {}};
  if (test.p > alpha) return test;
  for (const MeasuredSize& context : scene.contexts) {
    for (const MeasuredConfig& cell : context.cells) {
      if (!cell.config.IsDefault()) test.families.try_emplace(FamilyOf(cell.config), 1);
    }
  }
  for (auto& [family, p] : test.families) p = sizes.P(&family);
  return test;
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
  std::vector<PlaceTest> overall;
  std::vector<double> p_overall;
  for (const MeasuredPlace& scene : grid.scenes) {
    overall.push_back(TestPlace(scene, kTogetherShare * alpha));
    p_overall.push_back(overall.back().p);
  }
  const double together = Threshold(std::move(p_overall), kTogetherShare * alpha);
  for (const PlaceTest& test : overall) {
    if (test.p > together) continue;
    PlaceEvidence& place = places_[test.place];
    std::vector<double> p_families;
    for (const auto& [family, p] : test.families) p_families.push_back(p);
    const double limit = Threshold(std::move(p_families), together);
    for (const auto& [family, p] : test.families) {
      if (p <= limit) place.families.insert(family);
    }
  }
  const double threshold = Threshold(std::move(least), kAloneShare * alpha);
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
