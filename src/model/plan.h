#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/choose.h"
#include "model/grid.h"
#include "model/predictor.h"
#include "policy/policy.h"

namespace diapason::model {

struct PlanOptions {
  ChoiceOptions choice{.margin = 0.02,
                       .confidence = 0.9,
                       .confidence_unmeasured = 0.95,
                       .discount_luck = true,
                       .tolerance = 0.02};
  // Only configurations that were measured at the very sizes.
  bool measured_only = false;
  // Where set, the choice at every size is somebody else's, who has better reasons than these
  // measurements; rows and their boundaries are made of it. The default: left to the library.
  std::function<Config(const CallPlace& place, uint64_t bytes)> chosen;
  // How far a row reaches from the sizes it is known at, as a factor: from 1 MiB with 2 to less
  // than 2 MiB. Where two sizes are too far apart for that, what lies between is left to the
  // library. 0: to where the next row begins.
  double reach = 0;
  // The same beyond the smallest and the largest size; 1: not at all.
  double edge = 1;
  // For a job that learns: after the rows, the best so many of every size band as further rows.
  // They change nothing where the policy is applied as it is, since the first row that matches
  // wins.
  size_t arms = 0;
  std::string origin;  // for the policy's header
};

// One row, and what speaks for it.
struct PlannedRow {
  policy::Rule rule;
  // Over the sizes that were measured within the row.
  ModelChoice::Gain least;
  double gain = 1;                 // geometric mean
  Basis basis = Basis::kMeasured;  // the weakest among them
  size_t sizes = 0;
  size_t samples = 0;  // of the configuration; 0 where it was not measured
  std::string Remark() const;
};

// What is left to the library, and why, for people.
struct LeftAlone {
  CallPlace place;
  uint64_t first = 0;
  uint64_t last = 0;
  std::string why;
};

struct PlannedPolicy {
  policy::Policy policy;  // the rows, then the arms
  std::vector<PlannedRow> rows;
  std::vector<LeftAlone> left;
  std::vector<std::string> messages;
  std::string Text() const;  // the policy as a file, with a remark before every row
};

// A policy from measurements, from a model, or from both: then measurements come first and the
// model speaks about what was not measured. At every size that was measured the choice is one that
// the data support against the library's own; between two sizes it changes where the two choices
// are equally fast; rows are as few as the tolerance allows. Outside of the measured sizes and
// places everything is left to the library.
// REQUIRES: one of them.
Result<PlannedPolicy> MakePlan(const Grid* grid, const Predictor* predictor,
                               const PlanOptions& options);

}  // namespace diapason::model
