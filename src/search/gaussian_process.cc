#include "search/gaussian_process.h"

#include <algorithm>
#include <cmath>

namespace diapason::search {
namespace {

// How much is known about the level of log seconds and its slope per doubling of the size, before
// any sample: next to nothing.
constexpr double kLevelVariance = 4;
constexpr double kSlopeVariance = 0.25;
// Where the library chooses by itself, neighbouring sizes may run different algorithms: the
// variance of what that changes.
constexpr double kSwitching = 0.01;
// Log standard deviations that a sample's noise stays within: 0.1 % and 100 %.
constexpr double kLeastNoise = -6.9;
constexpr double kMostNoise = 0;
constexpr double kLeastVariance = 1e-12;

// Matern's kernel, twice differentiable: smooth, yet able to bend where an algorithm changes gear.
double Matern(double distance, double length) {
  const double scaled = std::sqrt(5.0) * std::abs(distance) / length;
  return (1 + scaled + scaled * scaled / 3) * std::exp(-scaled);
}

}  // namespace

uint32_t GaussianProcess::Add(size_t call_case, size_t candidate, double size, double channels,
                              const CurveName& curve) {
  Cell cell;
  cell.call_case = call_case;
  cell.candidate = candidate;
  cell.size = sizes_.Of(size);
  cell.channels = channels_.Of(channels);
  cell.curve = curves_.Of(curve);
  cell.free = std::get<0>(curve) == kKeep;
  cells_.push_back(cell);
  return static_cast<uint32_t>(cells_.size() - 1);
}

void GaussianProcess::Begin() {
  const std::vector<CurveName>& names = curves_.values();
  differing_.resize(names.size() * names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const auto& [algorithm, protocol, segment, asked, environment] = names[i];
    for (size_t j = 0; j < names.size(); ++j) {
      const CurveName& other = names[j];
      differing_[i * names.size() + j] = static_cast<uint8_t>(
          int{algorithm != std::get<0>(other)} + int{protocol != std::get<1>(other)} +
          int{segment != std::get<2>(other)} + int{asked != std::get<3>(other)} +
          int{environment != std::get<4>(other)});
    }
  }
  SetShape(UsualShape());
  Condition();
}

void GaussianProcess::SetShape(const KernelParams& wanted) {
  shape_ = wanted;
  const double signal = std::exp(2 * shape_[kSignal]);
  const double kin = 1 / (1 + std::exp(shape_[kCrossConfig]));
  const std::vector<double>& x = sizes_.values();
  const std::vector<double>& c = channels_.values();
  size_table_.resize(x.size() * x.size());
  level_table_.resize(x.size() * x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < x.size(); ++j) {
      size_table_[i * x.size() + j] = signal * Matern(x[i] - x[j], std::exp(shape_[kOverSizes]));
      level_table_[i * x.size() + j] = kLevelVariance + kSlopeVariance * x[i] * x[j];
    }
  }
  channel_table_.resize(c.size() * c.size());
  for (size_t i = 0; i < c.size(); ++i) {
    for (size_t j = 0; j < c.size(); ++j) {
      channel_table_[i * c.size() + j] = Matern(c[i] - c[j], std::exp(shape_[kOverChannels]));
    }
  }
  for (size_t parts = 0; parts < kinship_.size(); ++parts) {
    kinship_[parts] = std::pow(kin, static_cast<double>(parts));
  }
  own_ = std::exp(2 * shape_[kOwn]);
  noise_table_.resize(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    noise_table_[i] =
        std::exp(2 * std::clamp(shape_[kNoise] - shape_[kCalming] * x[i], kLeastNoise, kMostNoise));
  }
}

double GaussianProcess::Kernel(uint32_t a, uint32_t b) const {
  const Cell& p = cells_[a];
  const Cell& q = cells_[b];
  const size_t size = p.size * sizes_.values().size() + q.size;
  return level_table_[size] +
         size_table_[size] * channel_table_[p.channels * channels_.values().size() + q.channels] *
             kinship_[differing_[p.curve * curves_.values().size() + q.curve]] +
         (a != b   ? 0
          : p.free ? std::max(own_, kSwitching)
                   : own_);
}

void GaussianProcess::Append(uint32_t cell, double noise_factor) {
  std::vector<double> row(cells_.size());
  for (uint32_t i = 0; i < row.size(); ++i) row[i] = Kernel(cell, i);
  double pivot = row[cell] + Noise(cell) * noise_factor;
  const size_t count = row.size();
  double* to = row.data();
  size_t before = 0;
  // Four at a time: the new row is then read and written a quarter as often.
  for (; before + 4 <= rows_.size(); before += 4) {
    const double* a = rows_[before].data();
    const double* b = rows_[before + 1].data();
    const double* c = rows_[before + 2].data();
    const double* d = rows_[before + 3].data();
    const double p = a[cell];
    const double q = b[cell];
    const double r = c[cell];
    const double s = d[cell];
    pivot -= p * p + q * q + r * r + s * s;
    for (size_t i = 0; i < count; ++i) to[i] -= p * a[i] + q * b[i] + r * c[i] + s * d[i];
  }
  for (; before < rows_.size(); ++before) {
    const double* a = rows_[before].data();
    const double p = a[cell];
    pivot -= p * p;
    for (size_t i = 0; i < count; ++i) to[i] -= p * a[i];
  }
  pivot = std::sqrt(std::max(pivot, kLeastVariance));
  for (size_t i = 0; i < count; ++i) {
    row[i] /= pivot;
    variance_[i] = std::max(variance_[i] - row[i] * row[i], kLeastVariance);
  }
  pivots_.push_back(pivot);
  row_cells_.push_back(cell);
  rows_.push_back(std::move(row));
}

void GaussianProcess::Settle(double value) {
  const size_t row = innovations_.size();
  value -= centre_;
  for (size_t before = 0; before < row; ++before) {
    value -= rows_[before][row_cells_[row]] * innovations_[before];
  }
  value /= pivots_[row];
  innovations_.push_back(value);
  for (size_t cell = 0; cell < mean_.size(); ++cell) mean_[cell] += rows_[row][cell] * value;
}

void GaussianProcess::Condition() {
  rows_.clear();
  row_cells_.clear();
  pivots_.clear();
  innovations_.clear();
  mean_.assign(cells_.size(), 0);
  variance_.resize(cells_.size());
  for (uint32_t i = 0; i < cells_.size(); ++i) variance_[i] = Kernel(i, i);
  for (const Observation& one : observed_) Append(one.cell, one.noise);
  for (const Observation& one : observed_) Settle(one.value + centre_);
}

double GaussianProcess::Covariance(uint32_t a, uint32_t b) const {
  double sum = Kernel(a, b);
  for (const std::vector<double>& row : rows_) sum -= row[a] * row[b];
  return sum;
}

void GaussianProcess::Pop() {
  const std::vector<double>& row = rows_.back();
  for (size_t cell = 0; cell < row.size(); ++cell) variance_[cell] += row[cell] * row[cell];
  rows_.pop_back();
  row_cells_.pop_back();
  pivots_.pop_back();
}

}  // namespace diapason::search
