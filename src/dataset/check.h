#pragma once

#include <vector>

#include "dataset/store.h"
#include "domain/finding.h"

namespace diapason::dataset {

// Data that should not be trusted without review, most severe first: "independent-runs" and the
// like. The thresholds are in check.cc; each finding's evidence has the numbers, and names the
// first few runs, files or points.
std::vector<Finding> Check(const StoreContents& contents);

}  // namespace diapason::dataset
