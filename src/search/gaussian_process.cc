#include "search/gaussian_process.h"

#include <Eigen/Core>
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

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Map<const RowMajor> RowsOf(const std::vector<double>& rows, size_t columns) {
  return {rows.data(), static_cast<Eigen::Index>(rows.size() / columns),
          static_cast<Eigen::Index>(columns)};
}

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
  const auto before = static_cast<Eigen::Index>(row_cells_.size());
  const auto count = static_cast<Eigen::Index>(cells_.size());
  rows_.resize(rows_.size() + cells_.size());
  Eigen::Map<RowMajor> rows(rows_.data(), before + 1, count);
  auto row = rows.row(before);
  for (uint32_t i = 0; i < cells_.size(); ++i) row[i] = Kernel(cell, i);
  const Eigen::VectorXd known = rows.col(cell).head(before);
  const double pivot = row[cell] + Noise(cell) * noise_factor - known.squaredNorm();
  row.noalias() -= known.transpose() * rows.topRows(before);
  row /= std::sqrt(std::max(pivot, kLeastVariance));
  Eigen::Map<Eigen::ArrayXd> variance(variance_.data(), count);
  variance = (variance - row.transpose().array().square()).max(kLeastVariance);
  pivots_.push_back(std::sqrt(std::max(pivot, kLeastVariance)));
  row_cells_.push_back(cell);
}

void GaussianProcess::Settle(double value) {
  const Eigen::Map<const RowMajor> rows = RowsOf(rows_, cells_.size());
  const auto row = static_cast<Eigen::Index>(innovations_.size());
  const Eigen::Map<const Eigen::VectorXd> before(innovations_.data(), row);
  const size_t cell = row_cells_[innovations_.size()];
  value -= centre_ + rows.col(static_cast<Eigen::Index>(cell)).head(row).dot(before);
  value /= pivots_[innovations_.size()];
  Eigen::Map<Eigen::RowVectorXd>(mean_.data(), rows.cols()) += value * rows.row(row);
  innovations_.push_back(value);
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
  const Eigen::Map<const RowMajor> rows = RowsOf(rows_, cells_.size());
  return Kernel(a, b) - rows.col(a).dot(rows.col(b));
}

void GaussianProcess::Pop() {
  const Eigen::Map<const RowMajor> rows = RowsOf(rows_, cells_.size());
  const auto last = rows.row(rows.rows() - 1).array();
  Eigen::Map<Eigen::Array<double, 1, Eigen::Dynamic>>(variance_.data(), rows.cols()) +=
      last.square();
  rows_.resize(rows_.size() - cells_.size());
  row_cells_.pop_back();
  pivots_.pop_back();
}

}  // namespace diapason::search
