#include "model/predictor.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "base/stats.h"
#include "base/text.h"
#include "base/units.h"
#include "domain/collectives.h"
#include "model/gap.h"
#include "model/transfer.h"

namespace diapason::model {
namespace {

// Beyond this many doublings nothing is chosen.
constexpr double kMostBeyond = 2;

// The position of a size among the measured ones.
struct Position {
  size_t below = 0;  // indices of sizes; equal if it is one of them, or outside
  size_t above = 0;
  double weight = 0;  // of `above`
  double beyond = 0;  // doublings outside; negative: below the smallest
  double gap = 0;     // doublings between the two
};

Position Locate(const std::vector<uint64_t>& sizes, uint64_t bytes) {
  Position position;
  const auto next = std::lower_bound(sizes.begin(), sizes.end(), bytes);
  const double log_bytes = LogBytes(bytes);
  if (next == sizes.end()) {
    position.below = position.above = sizes.size() - 1;
    position.beyond = (log_bytes - LogBytes(sizes.back())) / std::numbers::ln2;
    return position;
  }
  position.above = static_cast<size_t>(next - sizes.begin());
  if (*next == bytes) {
    position.below = position.above;
    return position;
  }
  if (next == sizes.begin()) {
    position.below = 0;
    position.beyond = (log_bytes - LogBytes(sizes.front())) / std::numbers::ln2;
    return position;
  }
  position.below = position.above - 1;
  const double low = LogBytes(sizes[position.below]);
  const double high = LogBytes(sizes[position.above]);
  position.weight = (log_bytes - low) / (high - low);
  position.gap = (high - low) / std::numbers::ln2;
  return position;
}

// Between two sizes, or outside: small messages take as long as the smallest, large ones have the
// bandwidth of the largest.
Estimate Between(const Estimate& below, const Estimate& above, const Position& position) {
  Estimate estimate;
  estimate.log_seconds =
      (1 - position.weight) * below.log_seconds + position.weight * above.log_seconds;
  // Errors at neighbouring sizes are correlated.
  estimate.doubt = (1 - position.weight) * below.doubt + position.weight * above.doubt;
  estimate.log_seconds += std::max(0.0, position.beyond) * std::numbers::ln2;
  return estimate;
}

Basis BasisOf(const Position& position, bool below, bool above) {
  if (position.beyond != 0) return Basis::kExtrapolated;
  if (!below || !above) return Basis::kPredicted;
  return position.below == position.above ? Basis::kMeasured : Basis::kInterpolated;
}

double Ratio(double a, double b) {
  return std::fabs(std::log(std::max(1.0, a) / std::max(1.0, b)));
}

}  // namespace

const char* ObjectiveName(Objective objective) {
  return objective == Objective::kTime ? "time" : "busbw";
}

Result<Objective> ParseObjective(const std::string& name) {
  for (const Objective objective : {Objective::kTime, Objective::kBusBandwidth}) {
    if (name == ObjectiveName(objective)) return objective;
  }
  return Invalid("unknown objective '" + name + "'" + Suggestion(name, {"time", "busbw"}));
}

const char* BasisName(Basis basis) {
  switch (basis) {
    case Basis::kMeasured:
      return "measured";
    case Basis::kInterpolated:
      return "interpolated";
    case Basis::kPredicted:
      return "predicted";
    case Basis::kExtrapolated:
      return "extrapolated";
    case Basis::kTransferred:
      return "transferred";
  }
  return "?";
}

std::vector<Estimate> Predictor::Ask(const CallPlace& place, uint64_t bytes,
                                     const ConfigFamily& family, int count) const {
  const auto rows = static_cast<size_t>(family.channels ? count : 1);
  const size_t columns = features_.count();
  std::vector<float> table(rows * columns);
  for (size_t i = 0; i < rows; ++i) {
    features_.Fill(place, bytes, Member(family, static_cast<int>(i) + 1), &table[i * columns]);
  }
  std::vector<Estimate> estimates(rows);
  std::vector<double> answer(rows);
  std::vector<double> squares(rows, 0);
  for (const Forest& forest : forests_) {
    answer.assign(rows, offset_);
    forest.PredictMonotone(table.data(), rows, columns, answer.data());
    for (size_t i = 0; i < rows; ++i) {
      estimates[i].log_seconds += answer[i];
      squares[i] += answer[i] * answer[i];
    }
  }
  const double members = std::max<double>(1, static_cast<double>(forests_.size()));
  for (size_t i = 0; i < rows; ++i) {
    Estimate& estimate = estimates[i];
    estimate.log_seconds /= members;
    estimate.doubt = std::sqrt(
        std::max(0.0, squares[i] / members - estimate.log_seconds * estimate.log_seconds));
  }
  return estimates;
}

double Predictor::PredictRow(const CallPlace& place, uint64_t bytes, const Config& config) const {
  std::vector<float> row(features_.count());
  features_.Fill(place, bytes, config, row.data());
  double sum = 0;
  for (const Forest& forest : forests_) sum += forest.Predict(row.data());
  return offset_ + sum / std::max<double>(1, static_cast<double>(forests_.size()));
}

Prediction Predictor::Look(const Request& request) const {
  for (const SceneTable& scene : scenes_) {
    if (scene.place == request.place && !scene.sizes.empty()) return LookHere(request, scene);
  }
  return LookElsewhere(request);
}

Prediction Predictor::LookHere(const Request& request, const SceneTable& scene) const {
  Prediction prediction;
  prediction.place = request.place;
  prediction.bytes = request.bytes;
  const Position position = Locate(scene.sizes, request.bytes);
  if (position.beyond != 0) {
    const size_t end = position.beyond > 0 ? 1 : 0;
    prediction.bend = BeyondError(scene.ends.gain[end], position.beyond);
    prediction.time_bend = BeyondError(scene.ends.time[end], position.beyond);
  } else {
    prediction.bend = GapError(scene.bend, position.weight, position.gap);
    prediction.time_bend = GapError(scene.time_bend, position.weight, position.gap);
  }
  // Further out it is unknown which algorithm the library uses.
  if (std::fabs(position.beyond) > kMostBeyond + 1e-9) {
    prediction.shared = prediction.time_bend = INFINITY;
  }
  if (std::fabs(position.beyond) > 1 + 1e-9) {
    prediction.caveats.push_back(
        Format("{} is {:.1f} doublings {} the sizes that were measured ({} to {})",
               FormatBytes(request.bytes), std::fabs(position.beyond),
               position.beyond > 0 ? "above" : "below", FormatBytes(scene.sizes.front()),
               FormatBytes(scene.sizes.back())));
  }
  prediction.contrast = scene.contrast;
  const auto& below = scene.library_default[position.below];
  const auto& above = scene.library_default[position.above];
  if (below.has_value() && above.has_value() && objective_ == Objective::kTime) {
    prediction.library_default = Between(*below, *above, position);
  }
  for (const SceneTable::FamilyTable& table : scene.families) {
    const ConfigFamily& family = table.family;
    const bool wanted = request.families.empty()
                            ? table.lowest > 0 || request.beyond
                            : std::find(request.families.begin(), request.families.end(), family) !=
                                  request.families.end();
    if (!wanted) continue;
    const size_t width = scene.Width(family);
    const bool all = request.beyond || table.lowest == 0;
    const size_t first = !family.channels || all ? 0 : static_cast<size_t>(table.lowest) - 1;
    const size_t last = !family.channels || all ? width : static_cast<size_t>(table.highest);
    if (objective_ == Objective::kBusBandwidth) {
      const std::vector<Estimate> asked = Ask(request.place, request.bytes, family, scene.top);
      for (size_t i = first; i < last; ++i) {
        const double gigabytes = std::max(1e-6, asked[i].log_seconds);
        const double seconds = static_cast<double>(request.bytes) *
                               BusFactor(request.place.collective, request.place.ranks) /
                               (gigabytes * 1e9);
        prediction.candidates.push_back(
            {Member(family, static_cast<int>(i) + 1), {std::log(seconds), 0}, Basis::kPredicted});
      }
      continue;
    }
    for (size_t i = first; i < last; ++i) {
      const SceneTable::Value& low = table.values[position.below * width + i];
      const SceneTable::Value& high = table.values[position.above * width + i];
      prediction.candidates.push_back(
          {Member(family, static_cast<int>(i) + 1),
           Between({low.log_seconds, low.doubt}, {high.log_seconds, high.doubt}, position),
           BasisOf(position, low.measured, high.measured)});
    }
  }
  return prediction;
}

void Predictor::MakeTransfer() {
  std::vector<MeasuredPlace> places;
  for (const SceneTable& scene : scenes_) {
    MeasuredPlace place{scene.place, {}, {}};
    for (size_t k = 0; k < scene.sizes.size(); ++k) {
      MeasuredSize context{scene.sizes[k], {}, {}};
      if (scene.library_default[k].has_value()) {
        context.library_default = 0;
        const Estimate& own = *scene.library_default[k];
        context.cells.push_back({{}, own.log_seconds, own.doubt});
      }
      for (const SceneTable::FamilyTable& table : scene.families) {
        const size_t width = scene.Width(table.family);
        for (size_t i = 0; i < width && !table.values.empty(); ++i) {
          const SceneTable::Value& value = table.values[k * width + i];
          if (!value.measured) continue;
          context.cells.push_back({Member(table.family, static_cast<int>(i) + 1),
                                   static_cast<double>(value.log_seconds),
                                   static_cast<double>(value.doubt)});
        }
      }
      std::sort(context.cells.begin(), context.cells.end(),
                [](const MeasuredConfig& a, const MeasuredConfig& b) {
                  return ConfigLess(a.config, b.config);
                });
      place.contexts.push_back(std::move(context));
    }
    places.push_back(std::move(place));
  }
  transfer_ = std::make_shared<const Transfer>(places);
}

std::vector<ConfigFamily> Predictor::FamiliesElsewhere(Collective collective) const {
  std::set<ConfigFamily> found;
  for (const bool same : {true, false}) {
    for (const SceneTable& scene : scenes_) {
      if (same != (scene.place.collective == collective)) continue;
      for (const auto& table : scene.families) {
        if (table.lowest == 0) continue;
        if (AsksTuner(library_) &&
            !PairExists(collective, table.family.algorithm, table.family.protocol)) {
          continue;
        }
        found.insert(table.family);
      }
    }
    if (!found.empty()) break;
  }
  return {found.begin(), found.end()};
}

Prediction Predictor::LookElsewhere(const Request& request) const {
  Prediction prediction;
  prediction.place = request.place;
  prediction.bytes = request.bytes;
  // The most similar place supplies the default's time, to turn relative into absolute times.
  const SceneTable* nearest = nullptr;
  double best = INFINITY;
  int top = 0;
  for (const SceneTable& scene : scenes_) {
    if (scene.sizes.empty()) continue;
    top = std::max(top, scene.top);
    const double distance = (scene.place.collective == request.place.collective ? 0 : 100) +
                            2 * Ratio(scene.place.nodes, request.place.nodes) +
                            Ratio(scene.place.ranks, request.place.ranks);
    if (distance < best) {
      best = distance;
      nearest = &scene;
    }
  }
  if (nearest == nullptr) return prediction;
  prediction.caveats.push_back("nothing was measured for " + PlaceText(request.place) +
                               "; the nearest is " + PlaceText(nearest->place));
  if (std::optional<Prediction> found =
          transfer_ == nullptr ? std::nullopt : transfer_->At(request.place, request.bytes);
      found.has_value()) {
    found->caveats = std::move(prediction.caveats);
    std::erase_if(found->candidates, [&](const PredictedConfig& one) {
      return !request.families.empty() &&
             std::find(request.families.begin(), request.families.end(), FamilyOf(one.config)) ==
                 request.families.end();
    });
    return *std::move(found);
  }
  const Request there{nearest->place, request.bytes, false, {}};
  const Prediction lent = LookHere(there, *nearest);
  double reference = 0;
  if (lent.library_default.has_value()) {
    reference = lent.library_default->log_seconds;
  } else if (!lent.candidates.empty()) {
    // The same reference as the trees' if there is no default.
    std::vector<double> all;
    for (const PredictedConfig& one : lent.candidates) all.push_back(one.estimate.log_seconds);
    reference = Median(all);
  }
  reference += std::log(std::max(0.1, BusFactor(request.place.collective, request.place.ranks)) /
                        std::max(0.1, BusFactor(nearest->place.collective, nearest->place.ranks)));
  if (objective_ == Objective::kTime) {
    if (lent.library_default.has_value()) prediction.library_default = Estimate{reference, 0};
    prediction.shared = prediction.time_bend = INFINITY;
  }
  const std::vector<ConfigFamily> families =
      request.families.empty() ? FamiliesElsewhere(request.place.collective) : request.families;
  for (const ConfigFamily& family : families) {
    int low = 1;
    int high = request.beyond ? top : 0;
    for (const SceneTable& scene : scenes_) {
      for (const auto& table : scene.families) {
        if (table.family == family) high = std::max(high, table.highest);
      }
    }
    if (high == 0) high = low = 1;
    const std::vector<Estimate> asked = Ask(request.place, request.bytes, family, high);
    for (size_t i = 0; i < asked.size(); ++i) {
      Estimate estimate = asked[i];
      if (objective_ == Objective::kTime) {
        estimate.log_seconds += reference;
      } else {
        estimate = {std::log(static_cast<double>(request.bytes) *
                             BusFactor(request.place.collective, request.place.ranks) /
                             (std::max(1e-6, asked[i].log_seconds) * 1e9)),
                    0};
      }
      prediction.candidates.push_back(
          {Member(family, static_cast<int>(i) + 1), estimate, Basis::kTransferred});
    }
  }
  return prediction;
}

}  // namespace diapason::model
