#pragma once

#include <string>
#include <vector>

#include "model/choose.h"
#include "model/evidence.h"
#include "model/grid.h"
#include "model/plan.h"
#include "model/predictor.h"
#include "model/transfer.h"

namespace diapason::model {

// One size of one place, and what may be chosen there.
struct SizePoint {
  uint64_t bytes = 0;
  Prediction prediction;
  ModelChoice choice;
  // Supported by the data; empty: the default.
  std::vector<PredictedConfig> supported;
  // Of these, within the tolerance of the best.
  std::vector<PredictedConfig> fine;
  const MeasuredSize* context = nullptr;  // null between measured sizes
  bool measured = false;                  // some configuration was, at this size
  std::string why;                        // if nothing is fine
};

const PredictedConfig* FindIn(const std::vector<PredictedConfig>& candidates, const Config& config);

// What the sizes of a place are judged by. Nothing is owned.
struct PlanSources {
  const Grid* grid = nullptr;
  const Predictor* predictor = nullptr;
  const Evidence* evidence = nullptr;  // of the grid
  const PlanOptions* options = nullptr;
};

// The measured sizes of a place, and eight sizes a doubling between them, in order. Between two
// measured sizes a configuration is fine if the lower bound of its interpolated gain says so, if it
// is supported at one of the two, and if a measured size is within a factor of 2.
std::vector<SizePoint> PointsOf(const CallPlace& place, const PlanSources& sources);

// The same for a number of nodes that was not measured, by what transfers to it; none is
// `measured`.
std::vector<SizePoint> TransferredPoints(const CallPlace& place, const Transfer& transfer,
                                         const PlanSources& sources);

}  // namespace diapason::model
