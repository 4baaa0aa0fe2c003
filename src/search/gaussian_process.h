#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "search/search.h"

namespace diapason::search {

// The parameters of the kernel, as logarithms, so that steps are factors.
enum Parameter {
  kSignal,        // configurations differ by this (log seconds)
  kOverSizes,     // ... and keep that difference over so many doublings of the size
  kOverChannels,  // ... and of the channel count
  kCrossConfig,   // log of 1/correlation - 1 of different algorithms, protocols, environments
  kOwn,           // what one candidate deviates from its smooth surroundings
  kNoise,         // what one sample deviates from its candidate's median, at the middle size
  kCalming,       // ... and how much (log) less at twice the size: short calls are noisier
  kParameters,
};
using KernelParams = std::array<double, kParameters>;
// The values that fit most clusters, before there are samples.
KernelParams UsualShape();

// What candidates of one curve share: algorithm, protocol, segment, whether the number of channels
// is asked for, environment.
using CurveName = std::tuple<int, int, int64_t, bool, std::string>;

// Numbers for the distinct values of something, in the order they are met.
template <typename T>
class Index {
 public:
  uint32_t Of(const T& value) {
    const auto [place, added] = numbers_.emplace(value, static_cast<uint32_t>(values_.size()));
    if (added) values_.push_back(value);
    return place->second;
  }
  const std::vector<T>& values() const { return values_; }

 private:
  std::map<T, uint32_t> numbers_;
  std::vector<T> values_;
};

// A Gaussian process over the log seconds of candidates that inform each other. Surrogate says what
// for; this is the arithmetic.
class GaussianProcess {
 public:
  // Before the first Fit: a candidate at log2 of its size and of its channels.
  uint32_t Add(size_t call_case, size_t candidate, double size, double channels,
               const CurveName& curve);
  size_t size() const { return cells_.size(); }
  // After the last Add.
  void Begin();

  void Fit(const SamplesByCandidate& known, bool learn);
  double Mean(uint32_t cell) const { return mean_[cell] + centre_; }
  double Variance(uint32_t cell) const { return variance_[cell]; }
  double Covariance(uint32_t a, uint32_t b) const;
  double Noise(uint32_t cell) const { return noise_table_[cells_[cell].size]; }

  // Appends an observation without its value, and takes the last one back.
  void Append(uint32_t cell, double noise_factor);
  void Pop();
  // Gives the oldest one without its value (log seconds).
  void Settle(double value);

 private:
  struct Cell {
    size_t call_case = 0;
    size_t candidate = 0;
    uint32_t size = 0;  // indices of tables
    uint32_t channels = 0;
    uint32_t curve = 0;
    bool free = false;  // the library chooses the algorithm, and may switch at any size
  };
  struct Observation {
    uint32_t cell = 0;
    double value = 0;  // log seconds, centred
    double noise = 0;  // in variances of one sample
    bool confirmed = false;
  };

  void SetShape(const KernelParams& wanted);
  double Kernel(uint32_t a, uint32_t b) const;
  void Take(const SamplesByCandidate& known);
  void Learn(int sweeps);
  double Score(const KernelParams& candidate, const std::vector<uint32_t>& subset);
  // False if their covariance is not positive definite.
  bool Factor(const std::vector<uint32_t>& subset);
  bool Doubt();
  void Condition();

  std::vector<Cell> cells_;
  Index<double> sizes_;     // log2 bytes, centred
  Index<double> channels_;  // log2 channels
  Index<CurveName> curves_;
  std::vector<uint8_t> differing_;  // by two curves: in how many of their names' parts

  KernelParams shape_ = {};
  double centre_ = 0;
  bool taught_ = false;
  std::vector<Observation> observed_;
  // How far samples of one cell lie from their centre, and at which size.
  std::vector<std::pair<double, uint32_t>> deviations_;

  // The kernel as products of small tables.
  std::vector<double> size_table_, channel_table_, level_table_;
  std::array<double, std::tuple_size_v<CurveName> + 1> kinship_ = {};  // by parts that differ
  double own_ = 0;
  std::vector<double> noise_table_;  // by size

  // The posterior. `rows_` is L^-1 K(observed, all), row by row, where L is the Cholesky factor of
  // the observations' covariance: appending an observation appends a row.
  std::vector<double> rows_;
  std::vector<uint32_t> row_cells_;
  std::vector<double> pivots_;       // the diagonal of L
  std::vector<double> innovations_;  // L^-1 y; shorter than rows_ while values are missing
  std::vector<double> mean_, variance_;

  // The Cholesky factor of the covariance of some observations, by columns, and their values
  // divided by it.
  std::vector<double> lower_, solved_;
};

}  // namespace diapason::search
