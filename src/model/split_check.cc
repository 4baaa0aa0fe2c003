#include "model/split_check.h"

#include <cmath>
#include <vector>

#include "base/random.h"
#include "base/stats.h"

namespace diapason::model {
namespace {

struct Hidden {
  CallPlace place;
  uint64_t bytes = 0;
  MeasuredConfig cell;
};

}  // namespace

Result<SplitCheck> CheckSplit(const Grid& grid, double share, const FitOptions& options) {
  SplitCheck check;
  Grid shown = grid;
  std::vector<Hidden> hidden;
  const CounterRandom random(options.seed, 4242);
  uint64_t number = 0;
  for (MeasuredPlace& scene : shown.scenes) {
    for (MeasuredSize& context : scene.contexts) {
      std::vector<MeasuredConfig> kept;
      context.library_default.reset();
      for (const MeasuredConfig& cell : context.cells) {
        const bool out = random.Uniform(number++) < share && !cell.config.IsDefault();
        if (out) {
          hidden.push_back({scene.place, context.bytes, cell});
          ++check.tested_cells;
          check.tested_samples += cell.samples;
          continue;
        }
        if (cell.config.IsDefault()) context.library_default = kept.size();
        kept.push_back(cell);
        ++check.trained_cells;
        check.trained_samples += cell.samples;
      }
      context.cells = std::move(kept);
    }
    std::erase_if(scene.contexts,
                  [](const MeasuredSize& context) { return context.cells.empty(); });
  }
  std::erase_if(shown.scenes, [](const MeasuredPlace& scene) { return scene.contexts.empty(); });
  if (hidden.empty()) return check;
  FitOptions fit = options;
  ASSIGN_OR_RETURN(const Predictor predictor, Predictor::Fit(shown, fit));
  std::vector<double> truth;
  std::vector<double> errors;
  for (const Hidden& one : hidden) {
    const Prediction prediction =
        predictor.Look({one.place, one.bytes, true, {FamilyOf(one.cell.config)}});
    for (const PredictedConfig& candidate : prediction.candidates) {
      if (!(candidate.config == one.cell.config)) continue;
      truth.push_back(BusGigabytes(one.place, one.bytes, one.cell.log_seconds));
      errors.push_back(BusGigabytes(one.place, one.bytes, candidate.estimate.log_seconds) -
                       truth.back());
    }
  }
  if (truth.empty()) return check;
  const double mean = Mean(truth);
  double around = 0;
  double left = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    around += (truth[i] - mean) * (truth[i] - mean);
    left += errors[i] * errors[i];
    check.mae += std::fabs(errors[i]) / static_cast<double>(errors.size());
  }
  check.r2 = around > 0 ? 1 - left / around : 0;
  return check;
}

}  // namespace diapason::model
