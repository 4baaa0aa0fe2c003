#pragma once

#include "base/status.h"
#include "model/predictor.h"

namespace diapason::model {

// The prediction error of bandwidths for hidden cells: commonly reported, but not a measure of
// decisions.
struct SplitCheck {
  size_t trained_cells = 0;
  size_t trained_samples = 0;
  size_t tested_cells = 0;
  size_t tested_samples = 0;
  double r2 = 0;   // of bus bandwidth
  double mae = 0;  // GB/s
};

// Hides a random fraction of the cells (never a default), fits on the rest and predicts the hidden
// ones.
Result<SplitCheck> CheckSplit(const Grid& grid, double share, const FitOptions& options);

}  // namespace diapason::model
