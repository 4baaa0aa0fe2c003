#pragma once

#include <cmath>
#include <map>
#include <vector>

#include "model/cost_curve.h"
#include "model/grid.h"

namespace diapason::model {

// A predicted time: the logarithm of seconds, and its standard deviation.
struct Estimate {
  double log_seconds = 0;
  double doubt = 0;
};

// Combines independent standard deviations. (std::hypot would need a newer glibc than supported.)
inline double Together(double a, double b) { return std::sqrt(a * a + b * b); }

// Predicts the other members of one family at one place from its measurements, at the measured
// sizes: a cost curve plus a Gaussian process for the deviations from it. Members with the same
// bytes per channel deviate alike, which transfers between channel counts.
class FamilyModel {
 public:
  // `cells` are those of the family, each with its size. Without any, the curve alone predicts.
  struct Observation {
    double log_bytes = 0;
    int channels = 1;
    double log_seconds = 0;
    double noise = 0;
  };
  FamilyModel(const FittedCurve& curve, std::vector<Observation> observations);

  // Estimates at one size, for each of these numbers of channels.
  std::vector<Estimate> At(double log_bytes, const std::vector<int>& channels) const;
  Estimate At(double log_bytes, int channels) const {
    return At(log_bytes, std::vector<int>{channels})[0];
  }
  bool empty() const { return observations_.empty(); }
  // There were so many observations that only a subset is used.
  bool thinned() const { return thinned_; }

  // Leave-one-out check: each member is predicted from all others of the family; the deviations in
  // units of the predicted error, and in logarithms. Members are channel counts.
  struct Deviation {
    size_t observation = 0;
    double off = 0;    // predicted less measured
    double error = 0;  // predicted, of this deviation
  };
  struct Check {
    double squares = 0;        // sum of (deviation / predicted error)^2
    double square_errors = 0;  // sum of deviation^2
    size_t count = 0;
    std::vector<Deviation> each;
    size_t groups = 0;  // that were left out, one after the other
  };
  Check LeaveMembersOut() const;
  // The same for single observations: the other sizes of a member stay.
  Check LeaveCellsOut() const;
  const std::vector<Observation>& observations() const { return observations_; }
  // Predicted errors are multiplied by this.
  void set_scale(double scale) { scale_ = scale; }

 private:
  // `groups` has the observations that are left out together.
  Check LeaveOut(const std::vector<std::vector<size_t>>& groups) const;

  FittedCurve curve_;
  std::vector<Observation> observations_;
  std::vector<double> log2_bytes_;  // of the observations
  std::vector<double> log2_channels_;
  std::vector<double> factor_;  // Cholesky, of their covariance, by columns
  std::vector<double> weights_;
  double scale_ = 1;
  bool thinned_ = false;
};

// The families of one place. Families in `extra` that were not measured there get a prior from the
// others, with a large error.
using SceneModel = std::map<ConfigFamily, FamilyModel>;
// One for each of the grid's scenes; they share information.
std::vector<SceneModel> FitScenes(const Grid& grid,
                                  const std::vector<std::vector<ConfigFamily>>& extra);

}  // namespace diapason::model
