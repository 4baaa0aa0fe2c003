#pragma once

#include <cmath>
#include <map>
#include <vector>

#include "model/cost_curve.h"
#include "model/grid.h"

namespace diapason::model {

// A time and what it may be off by: the logarithm of seconds, and its standard deviation.
struct Estimate {
  double log_seconds = 0;
  double doubt = 0;
};

// Two doubts that have nothing to do with each other. (std::hypot would need a newer glibc than we
// promise to run on.)
inline double Together(double a, double b) { return std::sqrt(a * a + b * b); }

// What the measurements of one family at one place say about its other members, at the sizes that
// were measured: a cost curve, and how the measurements near by deviate from it. Members whose
// bytes per channel are the same deviate alike, which is what carries from one channel count to
// another (a Gaussian process).
class FamilyModel {
 public:
  // `cells` are those of the family, each with its size. Without any, the curve alone speaks.
  struct Observation {
    double log_bytes = 0;
    int channels = 1;
    double log_seconds = 0;
    double noise = 0;
  };
  FamilyModel(const FittedCurve& curve, std::vector<Observation> observations);

  // What neighbours say about members at one size: of each of these numbers of channels.
  std::vector<Estimate> At(double log_bytes, const std::vector<int>& channels) const;
  Estimate At(double log_bytes, int channels) const {
    return At(log_bytes, std::vector<int>{channels})[0];
  }
  bool empty() const { return observations_.empty(); }
  // There were so many observations that not all of them are used.
  bool thinned() const { return thinned_; }

  // What all members are predicted to be from all others of the family, against what they are: the
  // deviations in units of the doubt, and in logarithms. Members are channel counts.
  struct Check {
    double squares = 0;        // sum of (deviation / doubt)^2
    double square_errors = 0;  // sum of deviation^2
    size_t count = 0;
  };
  Check LeaveMembersOut() const;
  // Doubts are multiplied by this.
  void set_scale(double scale) { scale_ = scale; }

 private:
  FittedCurve curve_;
  std::vector<Observation> observations_;
  std::vector<double> log2_bytes_;  // of the observations
  std::vector<double> log2_channels_;
  std::vector<double> factor_;  // Cholesky, of their covariance
  std::vector<double> weights_;
  double scale_ = 1;
  bool thinned_ = false;
};

// The families of one place. Those in `extra` that were not measured there have what the others
// say about them, which is little.
using SceneModel = std::map<ConfigFamily, FamilyModel>;
// One for each of the grid's scenes; they inform each other.
std::vector<SceneModel> FitScenes(const Grid& grid,
                                  const std::vector<std::vector<ConfigFamily>>& extra);

}  // namespace diapason::model
