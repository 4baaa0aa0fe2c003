#pragma once

#include "base/status.h"
#include "model/predictor.h"

namespace diapason::model {

// How well bandwidths are predicted of cells that were not shown: the figures that say little about
// decisions, and that everybody asks for.
struct SplitCheck {
  size_t trained_cells = 0;
  size_t trained_samples = 0;
  size_t tested_cells = 0;
  size_t tested_samples = 0;
  double r2 = 0;   // of bus bandwidth
  double mae = 0;  // GB/s
};

// Hides a share of the cells (never a default), by lot, fits on the rest and asks about the hidden.
Result<SplitCheck> CheckSplit(const Grid& grid, double share, const FitOptions& options);

}  // namespace diapason::model
