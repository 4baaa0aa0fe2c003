#include "model/local_model.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numbers>

namespace diapason::model {
namespace {

// The Gaussian process for deviations from the curve (logarithms): by bytes per channel, and by
// size and channels. Length scales are in doublings.
constexpr double kByLane = 0.5;
constexpr double kLaneReach = 1.5;
constexpr double kLaneChannelsReach = 6;
constexpr double kBySize = 0.2;
constexpr double kSizeReach = 2.25;
constexpr double kChannelsReach = 2.25;
// Variation of a single member at one size, independent of its neighbours.
constexpr double kOwn = 0.03;
// Beyond this many measurements of one family an even subset is used, since the time grows with the
// third power.
constexpr size_t kMostObservations = 192;

// Model error of the curves, independent of the number of points.
constexpr double kCurveNoise = 0.12;
constexpr double kPointsWorth = 8;

// 1 at distance 0, a quarter at twice the reach; a valid covariance in any dimension.
inline double Near(double distance, double reach) {
  const double x = 1 + distance * distance / (4 * reach * reach);
  return 1 / (x * x);
}

inline double Covariance(double size_a, double channels_a, double size_b, double channels_b) {
  const double size = size_a - size_b;
  const double channels = channels_a - channels_b;
  return kByLane * kByLane * Near(size - channels, kLaneReach) *
             Near(channels, kLaneChannelsReach) +
         kBySize * kBySize * Near(size, kSizeReach) * Near(channels, kChannelsReach);
}

double Log2(double log) { return log / std::numbers::ln2; }

Eigen::Map<const Eigen::MatrixXd> LowerOf(const std::vector<double>& factor, Eigen::Index size) {
  return {factor.data(), size, size};
}

}  // namespace

FamilyModel::FamilyModel(const FittedCurve& curve, std::vector<Observation> observations)
    : curve_(curve), observations_(std::move(observations)) {
  if (observations_.size() > kMostObservations) {
    std::vector<Observation> some;
    const double step =
        static_cast<double>(observations_.size()) / static_cast<double>(kMostObservations);
    for (size_t i = 0; i < kMostObservations; ++i) {
      some.push_back(observations_[static_cast<size_t>(static_cast<double>(i) * step)]);
    }
    observations_ = std::move(some);
    thinned_ = true;
  }
  const size_t n = observations_.size();
  for (const Observation& one : observations_) {
    log2_bytes_.push_back(Log2(one.log_bytes));
    log2_channels_.push_back(std::log2(one.channels));
  }
  if (n == 0) return;
  factor_.assign(n * n, 0);
  weights_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      factor_[j * n + i] =
          Covariance(log2_bytes_[i], log2_channels_[i], log2_bytes_[j], log2_channels_[j]);
    }
    factor_[i * n + i] += kOwn * kOwn + observations_[i].noise * observations_[i].noise;
    weights_[i] =
        observations_[i].log_seconds -
        curve_.curve.LogSeconds(observations_[i].log_bytes, std::log(observations_[i].channels));
  }
  const auto size = static_cast<Eigen::Index>(n);
  Eigen::Map<Eigen::MatrixXd> covariance(factor_.data(), size, size);
  // In place. Noise on the diagonal makes it positive definite.
  const Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>> factor(covariance);
  Eigen::Map<Eigen::VectorXd> weights(weights_.data(), size);
  factor.solveInPlace(weights);
  if (factor.info() != Eigen::Success) weights.setZero();
}

std::vector<Estimate> FamilyModel::At(double log_bytes, const std::vector<int>& channels) const {
  const size_t n = observations_.size();
  const size_t m = channels.size();
  const double size = Log2(log_bytes);
  std::vector<double> lanes(m);
  for (size_t j = 0; j < m; ++j) lanes[j] = std::log2(channels[j]);
  // A row for every observation, a column for every member: all columns are solved at once.
  const auto rows = static_cast<Eigen::Index>(n);
  Eigen::MatrixXd near(rows, static_cast<Eigen::Index>(m));
  for (size_t j = 0; j < m; ++j) {
    for (size_t i = 0; i < n; ++i) {
      near(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) =
          Covariance(size, lanes[j], log2_bytes_[i], log2_channels_[i]);
    }
  }
  const Eigen::VectorXd deviations =
      near.transpose() * Eigen::Map<const Eigen::VectorXd>(weights_.data(), rows);
  if (n > 0) LowerOf(factor_, rows).triangularView<Eigen::Lower>().solveInPlace(near);
  std::vector<Estimate> estimates(m);
  for (size_t j = 0; j < m; ++j) {
    const auto column = static_cast<Eigen::Index>(j);
    const double log_channels = std::log(channels[j]);
    estimates[j].log_seconds =
        curve_.curve.LogSeconds(log_bytes, log_channels) + deviations[column];
    const double variance =
        kByLane * kByLane + kBySize * kBySize + kOwn * kOwn - near.col(column).squaredNorm();
    double doubt = std::sqrt(std::max(variance, 1e-6));
    if (empty()) doubt = Together(doubt, curve_.Doubt(log_bytes, log_channels));
    estimates[j].doubt = scale_ * doubt;
  }
  return estimates;
}

FamilyModel::Check FamilyModel::LeaveMembersOut() const {
  std::map<int, std::vector<size_t>> members;
  for (size_t i = 0; i < observations_.size(); ++i) {
    members[observations_[i].channels].push_back(i);
  }
  if (members.size() < 2) return {};
  std::vector<std::vector<size_t>> groups;
  for (auto& [channels, block] : members) groups.push_back(std::move(block));
  return LeaveOut(groups);
}

FamilyModel::Check FamilyModel::LeaveCellsOut() const {
  if (observations_.size() < 2) return {};
  std::vector<std::vector<size_t>> groups;
  for (size_t i = 0; i < observations_.size(); ++i) groups.push_back({i});
  return LeaveOut(groups);
}

FamilyModel::Check FamilyModel::LeaveOut(const std::vector<std::vector<size_t>>& groups) const {
  Check check;
  const size_t n = observations_.size();
  // The inverse, from which the leave-one-out predictions follow.
  const auto size = static_cast<Eigen::Index>(n);
  Eigen::MatrixXd lower = Eigen::MatrixXd::Identity(size, size);
  LowerOf(factor_, size).triangularView<Eigen::Lower>().solveInPlace(lower);
  const Eigen::MatrixXd inverse = lower.transpose() * lower;
  const Eigen::Map<const Eigen::VectorXd> weights(weights_.data(), size);
  for (const std::vector<size_t>& block : groups) {
    const Eigen::LLT<Eigen::MatrixXd> part(inverse(block, block));
    if (part.info() != Eigen::Success) continue;
    const Eigen::VectorXd off = part.solve(weights(block));
    const auto m = static_cast<Eigen::Index>(block.size());
    const Eigen::MatrixXd units = part.matrixL().solve(Eigen::MatrixXd::Identity(m, m));
    const Eigen::VectorXd variances = units.colwise().squaredNorm().transpose();
    check.squares += (off.array().square() / variances.array()).sum();
    check.square_errors += off.squaredNorm();
    check.count += block.size();
    ++check.groups;
    for (size_t i = 0; i < block.size(); ++i) {
      const auto at = static_cast<Eigen::Index>(i);
      check.each.push_back({block[i], -off[at], scale_ * std::sqrt(variances[at])});
    }
  }
  return check;
}

namespace {

// Properties of protocols on every machine: LL has a low start-up time and sends every byte twice;
// simple is the opposite.
struct Habit {
  double start = 0;  // log, relative to the fastest of the place
  double pace = 1;   // fraction of the wire that carries data
};

Habit HabitOf(Library library, int protocol) {
  if (!AsksTuner(library)) return {0.25, 1};
  switch (protocol) {
    case kLl:
      return {-0.05, 0.5};
    case kLl128:
      return {0.25, 0.93};
    default:
      return {0.75, 1};
  }
}

// Prior standard deviations of a curve's parameters.
constexpr std::array<double, CostCurve::kParameters> kWidth = {0.5, 1, 0.35, 1};
// This many channels saturate the wire.
constexpr double kChannelsToFill = 24;
// Start-up time per channel, relative to the fastest of the place.
constexpr double kChannelStart = -4;

struct ModelEntry {
  size_t scene = 0;
  ConfigFamily family;
  std::vector<CurvePoint> points;
  std::vector<FamilyModel::Observation> observations;
  CostCurve usual;
  FittedCurve fitted;
};

// The correlation of two families' deviations from the prior.
double Kinship(const CallPlace& place_a, const ModelEntry& a, const CallPlace& place_b,
               const ModelEntry& b) {
  const bool same_pair =
      a.family.algorithm == b.family.algorithm && a.family.protocol == b.family.protocol;
  if (place_a.collective != place_b.collective) return same_pair ? 0.6 : 0.2;
  if (same_pair) return 0.9;
  const bool related =
      a.family.algorithm == b.family.algorithm || a.family.protocol == b.family.protocol;
  return a.scene == b.scene && related ? 0.7 : 0.3;
}

void FitOne(ModelEntry* entry, const CurvePrior& prior) {
  const double worth = std::max(1.0, static_cast<double>(entry->points.size()) / kPointsWorth);
  entry->fitted = FitCurve(entry->points, prior, kCurveNoise * std::sqrt(worth));
}

// The prior for this family, given the other families' deviations.
CurvePrior PriorFrom(const Grid& grid, const std::vector<ModelEntry>& entries,
                     const ModelEntry& entry) {
  CurvePrior prior{entry.usual, {}};
  for (int p = 0; p < CostCurve::kParameters; ++p) {
    double sum = 0;
    double precision = 1 / (kWidth[p] * kWidth[p]);
    for (const ModelEntry& other : entries) {
      if (&other == &entry || other.points.empty()) continue;
      const double kin =
          Kinship(grid.scenes[entry.scene].place, entry, grid.scenes[other.scene].place, other);
      const double variance =
          kWidth[p] * kWidth[p] * (1 - kin * kin) / (kin * kin) + other.fitted.covariance[p][p];
      sum += (other.fitted.curve.at[p] - other.usual.at[p]) / variance;
      precision += 1 / variance;
    }
    prior.centre.at[p] += sum / precision;
    prior.width[p] = std::sqrt(1 / precision + 0.04);
  }
  return prior;
}

std::vector<ModelEntry> Entries(const Grid& grid,
                                const std::vector<std::vector<ConfigFamily>>& extra) {
  std::vector<ModelEntry> entries;
  for (size_t s = 0; s < grid.scenes.size(); ++s) {
    std::map<ConfigFamily, ModelEntry> found;
    for (const ConfigFamily& family : extra[s]) found[family].family = family;
    double fastest = INFINITY;
    double pace = INFINITY;
    for (const MeasuredSize& context : grid.scenes[s].contexts) {
      const double log_bytes = LogBytes(context.bytes);
      for (const MeasuredConfig& cell : context.cells) {
        fastest = std::min(fastest, cell.log_seconds);
        pace = std::min(pace, cell.log_seconds - log_bytes);
        if (cell.config.IsDefault()) continue;
        ModelEntry& entry = found[FamilyOf(cell.config)];
        entry.family = FamilyOf(cell.config);
        const int channels = std::max(1, cell.config.channels);
        entry.points.push_back({log_bytes, std::log(channels), cell.log_seconds});
        entry.observations.push_back({log_bytes, channels, cell.log_seconds, cell.noise});
      }
    }
    for (auto& [family, entry] : found) {
      const Habit habit = HabitOf(grid.library, family.protocol);
      const double wire = pace - std::log(habit.pace);
      entry.scene = s;
      entry.usual.at = {fastest + habit.start,
                        wire + (family.channels ? std::log(kChannelsToFill) : 0), wire,
                        fastest + kChannelStart};
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

}  // namespace

std::vector<SceneModel> FitScenes(const Grid& grid,
                                  const std::vector<std::vector<ConfigFamily>>& extra) {
  std::vector<ModelEntry> entries = Entries(grid, extra);
  for (ModelEntry& entry : entries) FitOne(&entry, {entry.usual, kWidth});
  const std::vector<ModelEntry> alone = entries;
  for (ModelEntry& entry : entries) {
    FitOne(&entry, PriorFrom(grid, alone, alone[static_cast<size_t>(&entry - entries.data())]));
  }
  std::vector<SceneModel> models(grid.scenes.size());
  for (ModelEntry& entry : entries) {
    models[entry.scene].emplace(entry.family,
                                FamilyModel(entry.fitted, std::move(entry.observations)));
  }
  for (SceneModel& model : models) {
    FamilyModel::Check all;
    for (const auto& [family, one] : model) {
      const FamilyModel::Check check = one.LeaveMembersOut();
      all.squares += check.squares;
      all.count += check.count;
    }
    // With few members the check itself is uncertain: it starts from 1 with the weight of a member.
    const double scale = std::sqrt((all.squares + 20) / (static_cast<double>(all.count) + 20));
    for (auto& [family, one] : model) one.set_scale(std::clamp(scale, 0.7, 2.5));
  }
  return models;
}

}  // namespace diapason::model
