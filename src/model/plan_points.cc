#include "model/plan_points.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "model/gap.h"

namespace diapason::model {
namespace {

// How far a row may be from a measured size.
constexpr double kReach = 2 * (1 + 1e-9);
constexpr uint64_t kPointsPerDoubling = 8;
// Estimates further apart are not treated as equal, whatever their noise: the one that looks slower
// usually is.
constexpr double kMostNoise = 0.01;

const MeasuredSize* ContextAt(const MeasuredPlace* scene, uint64_t bytes) {
  if (scene == nullptr) return nullptr;
  for (const MeasuredSize& context : scene->contexts) {
    if (context.bytes == bytes) return &context;
  }
  return nullptr;
}

Estimate Line(double low, double high, double low_noise, double high_noise, double weight) {
  return {(1 - weight) * low + weight * high,
          Together((1 - weight) * low_noise, weight * high_noise)};
}

// What the measurements around a size say: every configuration, and the library's own choice.
void AddLines(const MeasuredPlace& scene, double unit, Prediction* prediction) {
  const uint64_t bytes = prediction->bytes;
  const std::optional<Surrounding> own = Surround(scene, bytes, {});
  prediction->library_default.reset();
  prediction->contrast = true;
  prediction->shared = 0;
  if (!own.has_value() || own->Reach(bytes) > kReach) return;
  const MeasuredConfig& low = own->below->cells[*own->below->library_default];
  const MeasuredConfig& high = own->above->cells[*own->above->library_default];
  prediction->library_default =
      Line(low.log_seconds, high.log_seconds, low.noise, high.noise, own->weight);
  prediction->bend = GapError(unit, own->weight, own->doublings);
  std::set<Config, decltype(&ConfigLess)> configs(&ConfigLess);
  for (const MeasuredSize& context : scene.contexts) {
    for (const MeasuredConfig& cell : context.cells) {
      if (!cell.config.IsDefault() && cell.paired) configs.insert(cell.config);
    }
  }
  for (const Config& config : configs) {
    const std::optional<Surrounding> around = Surround(scene, bytes, config);
    if (!around.has_value() || around->Reach(bytes) > kReach) continue;
    const MeasuredConfig* const below = around->below->Find(config);
    const MeasuredConfig* const above = around->above->Find(config);
    Estimate estimate =
        Line(below->log_seconds, above->log_seconds, below->noise, above->noise, around->weight);
    // A configuration that was measured at fewer sizes is known less well.
    const double error = GapError(unit, around->weight, around->doublings);
    const double more = error * error - prediction->bend * prediction->bend;
    if (more > 0) estimate.doubt = Together(estimate.doubt, std::sqrt(more));
    std::erase_if(prediction->candidates,
                  [&](const PredictedConfig& one) { return one.config == config; });
    prediction->candidates.push_back({config, estimate, Basis::kInterpolated});
  }
}

void AddMeasurements(const MeasuredSize& context, Prediction* prediction) {
  // Evidence says whether the configurations differ at all.
  prediction->contrast = true;
  prediction->shared = 0;
  prediction->bend = 0;
  prediction->library_default.reset();
  for (const MeasuredConfig& cell : context.cells) {
    const Estimate measured{cell.log_seconds, cell.noise};
    if (cell.config.IsDefault()) {
      prediction->library_default = measured;
      continue;
    }
    std::erase_if(prediction->candidates,
                  [&](const PredictedConfig& one) { return one.config == cell.config; });
    prediction->candidates.push_back({cell.config, measured, Basis::kMeasured});
  }
}

class PointMaker {
 public:
  PointMaker(const CallPlace& place, const PlanSources& sources)
      : place_(place),
        sources_(sources),
        options_(*sources.options),
        scene_(sources.grid == nullptr ? nullptr : sources.grid->Find(place)) {
    thresholds_ = options_.choice;
    used_ = scene_;
    if (scene_ == nullptr) return;
    unit_ = GapUnit(*scene_);
    if (options_.chosen || !sources.evidence->AnyProven(place) ||
        !NoiseHidesSteps(*scene_, unit_)) {
      return;
    }
    // That something is faster is known: what is left is to estimate how much, where.
    smooth_ = Smoothed(*scene_, unit_);
    used_ = &smooth_;
  }

  std::vector<SizePoint> Make() {
    std::vector<SizePoint> points;
    const std::vector<uint64_t> sizes = Sizes();
    if (scene_ == nullptr) {
      // Only a model: its measurements prove something if they do at all sizes together.
      thresholds_.confidence = std::max(
          thresholds_.confidence, 1 - options_.false_plans / static_cast<double>(sizes.size()));
    }
    for (const uint64_t bytes : sizes) points.push_back(Measured(bytes));
    if (options_.chosen) return points;
    std::vector<SizePoint> all;
    for (size_t i = 0; i < points.size(); ++i) {
      all.push_back(points[i]);
      if (i + 1 == points.size()) break;
      for (const uint64_t bytes : SizesBetween(points[i].bytes, points[i + 1].bytes)) {
        all.push_back(Between(bytes, points[i], points[i + 1]));
      }
    }
    return all;
  }

  std::vector<SizePoint> MakeTransferred(const Transfer& transfer) const {
    std::vector<SizePoint> points;
    const std::vector<uint64_t> sizes = transfer.SizesFor(place_);
    for (size_t i = 0; i < sizes.size(); ++i) {
      points.push_back(Transferred(sizes[i], transfer));
      if (i + 1 == sizes.size()) break;
      for (const uint64_t bytes : SizesBetween(sizes[i], sizes[i + 1])) {
        points.push_back(Transferred(bytes, transfer));
      }
    }
    return points;
  }

 private:
  SizePoint Transferred(uint64_t bytes, const Transfer& transfer) const {
    SizePoint point;
    point.bytes = bytes;
    point.prediction.place = place_;
    point.prediction.bytes = bytes;
    if (std::optional<Prediction> found = transfer.At(place_, bytes); found.has_value()) {
      point.prediction = *std::move(found);
    }
    Judge(
        [&](const PredictedConfig& one) {
          return sources_.evidence->FamilyKnown(place_.collective, FamilyOf(one.config));
        },
        "it is proven on no other number of nodes", &point);
    return point;
  }

  std::vector<uint64_t> Sizes() const {
    std::set<uint64_t> sizes;
    if (scene_ != nullptr) {
      for (const MeasuredSize& context : scene_->contexts) sizes.insert(context.bytes);
    } else {
      for (const SceneTable& table : sources_.predictor->scenes()) {
        if (table.place == place_) sizes.insert(table.sizes.begin(), table.sizes.end());
      }
    }
    return {sizes.begin(), sizes.end()};
  }

  static std::vector<uint64_t> SizesBetween(uint64_t low, uint64_t high) {
    std::vector<uint64_t> sizes;
    uint64_t octave = 1;
    while (octave <= low / 2) octave *= 2;
    for (; octave < high; octave *= 2) {
      for (uint64_t k = kPointsPerDoubling; k < 2 * kPointsPerDoubling; ++k) {
        const uint64_t bytes = octave / kPointsPerDoubling * k;
        if (bytes > low && bytes < high) sizes.push_back(bytes);
      }
      if (octave > UINT64_MAX / 2) break;
    }
    return sizes;
  }

  Prediction Ask(uint64_t bytes) const {
    Prediction prediction;
    if (sources_.predictor != nullptr) {
      prediction = sources_.predictor->Look({place_, bytes, false, {}});
    }
    prediction.place = place_;
    prediction.bytes = bytes;
    return prediction;
  }

  SizePoint Measured(uint64_t bytes) const {
    SizePoint point;
    point.bytes = bytes;
    point.measured = true;
    point.context = ContextAt(scene_, bytes);
    point.prediction = Ask(bytes);
    if (point.context != nullptr) AddMeasurements(*ContextAt(used_, bytes), &point.prediction);
    std::erase_if(point.prediction.candidates, [&](const PredictedConfig& one) {
      return options_.measured_only && one.basis != Basis::kMeasured;
    });
    if (options_.chosen) {
      point.choice = Choose(point.prediction, thresholds_);
      const PredictedConfig* const chosen =
          FindIn(point.prediction.candidates, options_.chosen(place_, bytes));
      if (chosen != nullptr) point.fine = {*chosen};
      return point;
    }
    Judge([&](const PredictedConfig& one) { return Proven(point, one); },
          "it may be luck: no gain is proven over all sizes together", &point);
    return point;
  }

  // Whether samples show that anything of the kind is faster here at all.
  bool Proven(const SizePoint& point, const PredictedConfig& one) const {
    if (scene_ == nullptr) return true;
    if (one.basis > Basis::kInterpolated) return sources_.evidence->AnyProven(place_);
    const MeasuredConfig* const cell = point.context->Find(one.config);
    return cell != nullptr && cell->paired && cell->samples > 1 && MeasuredFaster(point, *cell) &&
           (sources_.evidence->AnyProven(place_) ||
            sources_.evidence->FamilyKnown(place_.collective, FamilyOf(one.config)));
  }

  // Whatever other sizes say: by the margin, in the samples of this size.
  bool MeasuredFaster(const SizePoint& point, const MeasuredConfig& cell) const {
    if (!point.context->library_default.has_value()) return false;
    const MeasuredConfig& own = point.context->cells[*point.context->library_default];
    return own.log_seconds - cell.log_seconds > std::log1p(options_.choice.margin);
  }

  SizePoint Between(uint64_t bytes, const SizePoint& low, const SizePoint& high) const {
    SizePoint point;
    point.bytes = bytes;
    const double factor = std::min(static_cast<double>(bytes) / static_cast<double>(low.bytes),
                                   static_cast<double>(high.bytes) / static_cast<double>(bytes));
    if (factor > kReach) {
      point.prediction.bytes = bytes;
      point.prediction.place = place_;
      point.why = "nothing was measured within a factor of 2";
      return point;
    }
    point.prediction = Ask(bytes);
    if (scene_ != nullptr) AddLines(*used_, unit_, &point.prediction);
    std::erase_if(point.prediction.candidates, [&](const PredictedConfig& one) {
      return options_.measured_only && one.basis != Basis::kInterpolated;
    });
    Judge(
        [&](const PredictedConfig& one) {
          if (FindIn(low.supported, one.config) == nullptr &&
              FindIn(high.supported, one.config) == nullptr) {
            return false;
          }
          if (one.basis > Basis::kInterpolated || (Faster(low, one) && Faster(high, one))) {
            return true;
          }
          ChoiceOptions thresholds = thresholds_;
          thresholds.confidence_between = options_.confidence_one_side;
          return Supported(point.prediction, one, thresholds);
        },
        "it is supported at neither of the measured sizes around", &point);
    return point;
  }

  // Faster at a measured size by half of the margin, or within the noise of it.
  bool Faster(const SizePoint& point, const PredictedConfig& config) const {
    const PredictedConfig* const one = FindIn(point.prediction.candidates, config.config);
    const std::optional<Estimate>& own = point.prediction.library_default;
    if (one == nullptr || !own.has_value()) return false;
    const double noise = Together(own->doubt, one->estimate.doubt);
    return own->log_seconds - one->estimate.log_seconds + noise >=
           std::log1p(options_.choice.margin / 2);
  }

  // What is faster at all sizes together, or surely at one, is believed more easily elsewhere; if
  // it was also estimated by all sizes, it is not the luck of one.
  ChoiceOptions ThresholdsFor(const PredictedConfig& one) const {
    ChoiceOptions thresholds = thresholds_;
    if (scene_ == nullptr || one.basis != Basis::kMeasured) return thresholds;
    const bool proven = sources_.evidence->FamilyProven(place_, FamilyOf(one.config));
    if (proven) {
      thresholds.confidence = std::min(thresholds.confidence, options_.confidence_proven);
    }
    if (used_ != &smooth_) return thresholds;
    thresholds.confidence = std::min(thresholds.confidence, options_.confidence_smoothed);
    if (proven) thresholds.discount_luck = false;
    return thresholds;
  }

  template <typename Allowed>
  void Judge(Allowed allowed, const char* otherwise, SizePoint* point) const {
    point->choice = Choose(point->prediction, thresholds_);
    point->why = point->choice.why;
    if (!point->prediction.library_default.has_value()) {
      point->why = "the library's own choice was not measured";
      return;
    }
    for (const PredictedConfig& one : point->prediction.candidates) {
      if (allowed(one) && Supported(point->prediction, one, ThresholdsFor(one))) {
        point->supported.push_back(one);
      }
    }
    if (point->supported.empty()) {
      if (!point->choice.leave_default) point->why = otherwise;
      return;
    }
    Prediction some = point->prediction;
    some.candidates = point->supported;
    ChoiceOptions decided = thresholds_;
    decided.discount_luck = false;
    decided.confidence =
        std::min(decided.confidence,
                 used_ == &smooth_ ? options_.confidence_smoothed : options_.confidence_proven);
    const ModelChoice choice = Choose(some, decided);
    if (choice.leave_default) {
      point->why = choice.why;
      return;
    }
    point->choice = choice;
    KeepFine(*choice.best, point);
  }

  // Of the supported ones those that are as good as the best.
  void KeepFine(const PredictedConfig& best, SizePoint* point) const {
    const auto seen = [](const PredictedConfig& one) { return one.basis <= Basis::kInterpolated; };
    for (const PredictedConfig& one : point->supported) {
      if (one.basis > best.basis) continue;
      // Small differences within the noise do not count.
      const double noise = std::min(Together(one.estimate.doubt, best.estimate.doubt), kMostNoise);
      const double apart = one.estimate.log_seconds - best.estimate.log_seconds;
      if (apart <= std::log1p(thresholds_.tolerance) + (seen(one) ? noise : 0)) {
        point->fine.push_back(one);
      }
    }
    // A measured configuration is preferred to an unmeasured one of equal speed.
    if (std::any_of(point->fine.begin(), point->fine.end(), seen)) {
      std::erase_if(point->fine, [&](const PredictedConfig& one) { return !seen(one); });
    }
  }

  const CallPlace place_;
  const PlanSources& sources_;
  const PlanOptions& options_;
  const MeasuredPlace* const scene_;
  MeasuredPlace smooth_;
  const MeasuredPlace* used_ = nullptr;  // the scene, or smooth_
  ChoiceOptions thresholds_;
  double unit_ = 0;
};

}  // namespace

const PredictedConfig* FindIn(const std::vector<PredictedConfig>& candidates,
                              const Config& config) {
  for (const PredictedConfig& one : candidates) {
    if (one.config == config) return &one;
  }
  return nullptr;
}

std::vector<SizePoint> PointsOf(const CallPlace& place, const PlanSources& sources) {
  return PointMaker(place, sources).Make();
}

std::vector<SizePoint> TransferredPoints(const CallPlace& place, const Transfer& transfer,
                                         const PlanSources& sources) {
  return PointMaker(place, sources).MakeTransferred(transfer);
}

}  // namespace diapason::model
