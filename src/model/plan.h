#pragma once

#include <functional>
#include <optional>
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
                       .confidence_between = 0.5,
                       .confidence_unmeasured = 0.95,
                       .discount_luck = true,
                       .tolerance = 0.01};
  // Only configurations that were measured, none that a model predicts.
  bool measured_only = false;
  // Rows for numbers of nodes that were not measured (transfer.h), from the measurements.
  bool transfer = true;
  // At most this share of the plans of measurements in which nothing is faster than the library's
  // own choice has a row at all. The goal is 5 %; the rest is for what the noise's own estimate
  // adds.
  double false_plans = 0.03;
  // The confidence at one size for an algorithm and protocol that is proven to be faster at this
  // place; choice.confidence is for the others.
  double confidence_proven = 0.75;
  // The same for every configuration of a noisy place where something is proven: its gains are
  // estimated from all sizes together (Smoothed).
  double confidence_smoothed = 0.6;
  // The confidence between two measured sizes for a configuration that is slower than the library's
  // own choice at one of them; choice.confidence_between is for those that are faster at both.
  double confidence_one_side = 0.7;
  // If set, supplies the choice at every size instead of these measurements; rows and their
  // boundaries are made of it. The default Config leaves the size to the library.
  std::function<Config(const CallPlace& place, uint64_t bytes)> chosen;
  // How far a row extends from its verified sizes, as a factor: with 2, from 1 MiB to less than 2
  // MiB. Between sizes that are further apart the library decides. 0: to the start of the next row.
  double reach = 0;
  // The same beyond the smallest and the largest size; 1: not at all.
  double edge = 1;
  // For a job that learns: appends the best this many configurations of every size band as further
  // rows. They have no effect in a static policy, since the first row that matches wins.
  size_t arms = 0;
  std::string origin;  // for the policy's header
};

// One row with its evidence.
struct PlannedRow {
  policy::Rule rule;
  // Over the measured sizes within the row; over the others if there are none.
  ModelChoice::Gain least;
  double gain = 1;                 // geometric mean
  Basis basis = Basis::kMeasured;  // the weakest among them
  size_t sizes = 0;                // measured ones
  size_t samples = 0;              // of the configuration; 0 if it was not measured
  // The least gain between measured sizes, if the row has such.
  std::optional<ModelChoice::Gain> between;
  std::string KnownFrom() const;  // "measured, interpolated between", ...
  std::string Remark() const;
};

// A range left to the library, and why.
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
// model covers the rest. At every size of a row the data must support the choice against the
// library's own: at measured sizes by samples (Evidence), between them by the lower bound of the
// interpolated gain (gap.h). There are as few rows as the tolerance allows. The library decides
// outside the measured sizes, and on numbers of nodes to which nothing transfers (transfer.h).
// REQUIRES: one of them.
Result<PlannedPolicy> MakePlan(const Grid* grid, const Predictor* predictor,
                               const PlanOptions& options);

}  // namespace diapason::model
