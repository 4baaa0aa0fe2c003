#include "model/plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "domain/decision.h"
#include "domain/schedule.h"
#include "model/plan_points.h"

namespace diapason::model {
namespace {

// Fewer channels first, then the smaller total time.
const PredictedConfig* Preferred(const std::vector<Config>& shared,
                                 const std::vector<SizePoint>& stops, size_t first, size_t last) {
  const PredictedConfig* chosen = nullptr;
  double chosen_sum = 0;
  for (const Config& config : shared) {
    double sum = 0;
    const PredictedConfig* one = nullptr;
    for (size_t i = first; i < last; ++i) {
      one = FindIn(stops[i].fine, config);
      sum += one->estimate.log_seconds;
    }
    const auto key = [](const PredictedConfig* c) {
      return c->config.channels == 0 ? 1 << 20 : c->config.channels;
    };
    if (chosen == nullptr || key(one) < key(chosen) ||
        (key(one) == key(chosen) && sum < chosen_sum)) {
      chosen = one;
      chosen_sum = sum;
    }
  }
  return chosen;
}

struct Stretch {
  size_t first = 0;
  size_t last = 0;  // one behind
  Config config;    // the default: left alone
};

// The minimum number of stretches: each continues as long as one configuration is acceptable for
// all its sizes, and these are within reach of each other.
std::vector<Stretch> MakeStretches(const std::vector<SizePoint>& stops, double reach) {
  const auto apart = [&](size_t last) {
    return reach > 0 && static_cast<double>(stops[last].bytes) >
                            reach * reach * static_cast<double>(stops[last - 1].bytes);
  };
  std::vector<Stretch> stretches;
  for (size_t first = 0; first < stops.size();) {
    size_t last = first + 1;
    if (stops[first].fine.empty()) {
      while (last < stops.size() && stops[last].fine.empty()) ++last;
      stretches.push_back({first, last, {}});
      first = last;
      continue;
    }
    std::vector<Config> shared;
    for (const PredictedConfig& one : stops[first].fine) shared.push_back(one.config);
    for (; last < stops.size() && !apart(last); ++last) {
      std::vector<Config> both;
      for (const Config& config : shared) {
        if (FindIn(stops[last].fine, config) != nullptr) both.push_back(config);
      }
      if (both.empty()) break;
      shared = std::move(both);
    }
    stretches.push_back({first, last, Preferred(shared, stops, first, last)->config});
    first = last;
  }
  return stretches;
}

double TimeOf(const SizePoint& stop, const Config& config) {
  if (config.IsDefault()) {
    return stop.prediction.library_default.has_value()
               ? stop.prediction.library_default->log_seconds
               : INFINITY;
  }
  const PredictedConfig* const one = FindIn(stop.prediction.candidates, config);
  return one == nullptr ? INFINITY : one->estimate.log_seconds;
}

// A round size near this one: eight per doubling.
uint64_t Rounded(double bytes, uint64_t low, uint64_t high) {
  const double step = std::exp2(std::floor(std::log2(bytes)) - 3);
  const auto near = static_cast<uint64_t>(std::max(1.0, std::round(bytes / step) * step));
  return std::clamp(near, low + 1, high);
}

// The size at which `after` becomes as fast as `before`, between the two sizes at which they are
// best.
uint64_t Boundary(const SizePoint& low, const SizePoint& high, const Config& before,
                  const Config& after) {
  const double at_low = TimeOf(low, after) - TimeOf(low, before);     // positive: before is faster
  const double at_high = TimeOf(high, after) - TimeOf(high, before);  // negative: after is
  double share = 0.5;
  if (std::isfinite(at_low) && std::isfinite(at_high) && at_low > 0 && at_high < 0) {
    share = at_low / (at_low - at_high);
  }
  const double bytes = std::exp((1 - share) * LogBytes(low.bytes) + share * LogBytes(high.bytes));
  return Rounded(bytes, low.bytes, high.bytes);
}

PlannedRow MakeRow(const CallPlace& place, const std::vector<SizePoint>& stops,
                   const Stretch& stretch) {
  PlannedRow row;
  row.rule.collective = place.collective;
  row.rule.config = stretch.config;
  row.rule.nodes = place.nodes;
  row.rule.ranks = place.ranks;
  const auto less = [](const ModelChoice::Gain& a, const ModelChoice::Gain& b) {
    return a.expected < b.expected;
  };
  std::vector<ModelChoice::Gain> measured;
  std::vector<ModelChoice::Gain> between;
  for (size_t i = stretch.first; i < stretch.last; ++i) {
    const SizePoint& stop = stops[i];
    const PredictedConfig* const one = FindIn(stop.prediction.candidates, stretch.config);
    const std::optional<ModelChoice::Gain> gain = GainOfChosen(stop.prediction, *one);
    if (gain.has_value()) (stop.measured ? measured : between).push_back(*gain);
    if (!stop.measured) continue;
    row.basis = std::max(row.basis, one->basis);
    ++row.sizes;
    if (stop.context == nullptr) continue;
    if (const MeasuredConfig* cell = stop.context->Find(stretch.config); cell != nullptr) {
      row.samples += cell->samples;
    }
  }
  if (!between.empty()) row.between = *std::min_element(between.begin(), between.end(), less);
  if (row.sizes == 0) {
    row.basis = FindIn(stops[stretch.first].fine, stretch.config)->basis;
    measured = between;
  }
  double sum = 0;
  for (const ModelChoice::Gain& gain : measured) sum += std::log(gain.expected);
  if (measured.empty()) return row;
  row.least = *std::min_element(measured.begin(), measured.end(), less);
  row.gain = std::exp(sum / static_cast<double>(measured.size()));
  return row;
}

// Where the next stretch starts. Neighbouring points are an eighth of a doubling apart, or a
// `chosen` function decides at the measured sizes alone.
uint64_t StartOfNext(const SizePoint& last, const SizePoint& next, const Stretch& before,
                     const Stretch& after, bool fine_points) {
  if (!fine_points) return Boundary(last, next, before.config, after.config);
  // The library decides where nothing is known.
  return before.config.IsDefault() || !after.config.IsDefault() ? next.bytes : last.bytes + 1;
}

// The reason at the size where a change was closest; a measured one if there is any.
std::string WhyLeft(const std::vector<SizePoint>& stops, const Stretch& stretch) {
  const SizePoint* closest = nullptr;
  const auto gain = [](const SizePoint& stop) {
    return stop.choice.gain.has_value() ? stop.choice.gain->expected : 0;
  };
  for (size_t k = stretch.first; k < stretch.last; ++k) {
    const SizePoint& stop = stops[k];
    if (closest == nullptr || (stop.measured && !closest->measured) ||
        (stop.measured == closest->measured && gain(stop) > gain(*closest))) {
      closest = &stop;
    }
  }
  if (!closest->prediction.library_default.has_value() && closest->measured) {
    return "the library's own choice was not measured";
  }
  return closest->why.empty() ? closest->choice.why : closest->why;
}

void PlanPlace(const CallPlace& place, const std::vector<SizePoint>& stops,
               const PlanOptions& options, PlannedPolicy* plan) {
  const std::vector<Stretch> stretches = MakeStretches(stops, options.reach);
  const auto times = [](uint64_t bytes, double factor) {
    return static_cast<uint64_t>(static_cast<double>(bytes) * factor);
  };
  uint64_t start = times(stops.front().bytes, 1 / options.edge);
  for (size_t i = 0; i < stretches.size(); ++i) {
    const Stretch& stretch = stretches[i];
    uint64_t end = stops[stretch.last - 1].bytes;
    uint64_t next = end;
    if (i + 1 < stretches.size()) {
      next = StartOfNext(stops[stretch.last - 1], stops[stretch.last], stretch, stretches[i + 1],
                         !options.chosen);
      end = next - 1;
    } else {
      end = times(end, options.edge);
    }
    if (stretch.config.IsDefault()) {
      plan->left.push_back({place, start, end, WhyLeft(stops, stretch)});
    } else {
      PlannedRow row = MakeRow(place, stops, stretch);
      row.rule.min_bytes = start;
      row.rule.max_bytes = end;
      if (options.reach > 0) {
        const uint64_t first = stops[stretch.first].bytes;
        const uint64_t last = stops[stretch.last - 1].bytes;
        row.rule.min_bytes = std::max(start, std::min(first, times(first, 1 / options.reach) + 1));
        row.rule.max_bytes = std::min(end, std::max(last, times(last, options.reach) - 1));
      }
      plan->rows.push_back(row);
    }
    start = next;
  }
}

// Rows for numbers of nodes that were not measured, where gains are shown to carry over.
void PlanUnmeasured(const PlanSources& sources, PlannedPolicy* plan) {
  const Transfer transfer(sources.grid->scenes);
  for (const CallPlace& place : transfer.Unmeasured()) {
    const std::vector<SizePoint> stops = TransferredPoints(place, transfer, sources);
    if (stops.empty()) continue;
    // What is left to the library there is not listed: it is left without being asked.
    PlannedPolicy there;
    PlanPlace(place, stops, *sources.options, &there);
    plan->rows.insert(plan->rows.end(), there.rows.begin(), there.rows.end());
  }
}

// What a job may try, by size band: first the library's own choice, so that the rows after it never
// match first, then the fastest.
void AddArms(const CallPlace& place, const std::vector<SizePoint>& stops, size_t count,
             std::vector<policy::Rule>* arms) {
  std::map<int, const SizePoint*> bands;
  for (const SizePoint& stop : stops)
    if (stop.measured) bands[SizeBand(stop.bytes)] = &stop;  // the largest size of a band
  for (const auto& [band, stop] : bands) {
    std::vector<PredictedConfig> best = stop->prediction.candidates;
    std::stable_sort(best.begin(), best.end(),
                     [](const PredictedConfig& a, const PredictedConfig& b) {
                       return a.estimate.log_seconds < b.estimate.log_seconds;
                     });
    if (best.size() > count) best.resize(count);
    policy::Rule rule;
    rule.collective = place.collective;
    rule.min_bytes = BandFirst(band);
    rule.max_bytes = BandLast(band);
    rule.nodes = place.nodes;
    rule.ranks = place.ranks;
    arms->push_back(rule);
    for (const PredictedConfig& one : best) {
      rule.config = one.config;
      arms->push_back(rule);
    }
  }
}

}  // namespace

Result<PlannedPolicy> MakePlan(const Grid* grid, const Predictor* predictor,
                               const PlanOptions& options) {
  if (grid == nullptr && predictor == nullptr) return Invalid("there is nothing to plan from");
  if (grid != nullptr && predictor != nullptr && grid->library != predictor->library()) {
    return Invalid("the model is of " + std::string(LibraryTitle(predictor->library())) +
                   ", the data are of " + std::string(LibraryTitle(grid->library)));
  }
  if (predictor != nullptr && predictor->objective() == Objective::kBusBandwidth) {
    return Invalid(
        "a model of bus bandwidth does not know the library's own choice: train one without "
        "--objective busbw");
  }
  PlannedPolicy plan;
  plan.policy.library = grid != nullptr ? grid->library : predictor->library();
  plan.policy.header.origin = options.origin;
  std::set<CallPlace> places;
  if (grid != nullptr) {
    for (const MeasuredPlace& scene : grid->scenes) places.insert(scene.place);
  }
  if (predictor != nullptr) {
    for (const SceneTable& table : predictor->scenes()) places.insert(table.place);
  }
  std::vector<policy::Rule> arms;
  size_t unmeasured = 0;
  const Evidence evidence(grid != nullptr ? *grid : Grid{}, options.false_plans);
  const PlanSources sources{grid, predictor, &evidence, &options};
  for (const CallPlace& place : places) {
    const std::vector<SizePoint> stops = PointsOf(place, sources);
    if (stops.empty()) continue;
    for (const SizePoint& stop : stops) {
      if (stop.measured && !stop.prediction.library_default.has_value()) ++unmeasured;
    }
    PlanPlace(place, stops, options, &plan);
    if (options.arms > 0) AddArms(place, stops, options.arms, &arms);
  }
  if (grid != nullptr && options.transfer && !options.measured_only && !options.chosen) {
    PlanUnmeasured(sources, &plan);
  }
  if (unmeasured > 0) {
    plan.messages.push_back(
        Format("at {} the library's own choice was not measured: left to the library, "
               "because the gain of a change is unknown",
               Count(unmeasured, "size")));
  }
  int line = 1;
  for (PlannedRow& row : plan.rows) {
    row.rule.line = line++;
    plan.policy.rules.push_back(row.rule);
  }
  for (policy::Rule& arm : arms) {
    arm.line = line++;
    plan.policy.rules.push_back(arm);
  }
  return plan;
}

}  // namespace diapason::model
