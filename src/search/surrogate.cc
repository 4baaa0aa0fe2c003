#include "search/surrogate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/stats.h"
#include "search/gaussian_process.h"

namespace diapason::search {
namespace {

// Larger families of cases are cut into blocks that know nothing of each other: the work grows
// with the square of a block.
constexpr size_t kMostCells = 1200;
constexpr double kLeastVariance = 1e-12;

double LogChannels(int channels) { return std::log2(static_cast<double>(channels)); }

CurveName CurveOf(const Candidate& candidate) {
  return {candidate.config.algorithm, candidate.config.protocol, candidate.config.segment_bytes,
          candidate.config.channels > 0, candidate.environment};
}

}  // namespace

Surrogate::Surrogate(const std::vector<CallCase>& call_cases) {
  // Families of cases that differ only in size.
  using Family = std::tuple<int, int, int, int, int, bool>;
  std::map<Family, std::vector<size_t>> families;
  for (size_t i = 0; i < call_cases.size(); ++i) {
    const measure::Trial& trial = call_cases[i].trial;
    families[{static_cast<int>(trial.operation), static_cast<int>(trial.type),
              static_cast<int>(trial.reduce), trial.root, trial.only_ranks, trial.in_place}]
        .push_back(i);
  }
  places_.resize(call_cases.size());
  for (auto& [family, members] : families) {
    std::sort(members.begin(), members.end(), [&](size_t a, size_t b) {
      return std::tuple(call_cases[a].trial.bytes, a) < std::tuple(call_cases[b].trial.bytes, b);
    });
    size_t cells = 0;
    std::vector<double> logs;
    std::vector<double> channels;
    for (const size_t member : members) {
      cells += call_cases[member].candidates.size();
      logs.push_back(
          std::log2(static_cast<double>(std::max<uint64_t>(call_cases[member].trial.bytes, 1))));
      for (const Candidate& candidate : call_cases[member].candidates) {
        if (candidate.config.channels > 0)
          channels.push_back(LogChannels(candidate.config.channels));
      }
    }
    const double middle = Median(logs);
    // Where the library chooses the number, it is somewhere among those that can be asked for.
    const double usual = channels.empty() ? 0 : Median(channels);
    const size_t pieces = (cells + kMostCells - 1) / kMostCells;
    const size_t piece = (cells + pieces - 1) / std::max<size_t>(pieces, 1);
    GaussianProcess* block = nullptr;
    for (size_t i = 0; i < members.size(); ++i) {
      const CallCase& call_case = call_cases[members[i]];
      const size_t count = call_case.candidates.size();
      // A case stays whole unless it is larger than a block by itself.
      if (block != nullptr && block->size() + count / 2 > piece) block = nullptr;
      places_[members[i]].resize(count);
      for (size_t candidate = 0; candidate < count; ++candidate) {
        if (block == nullptr || block->size() >= 2 * kMostCells) {
          blocks_.push_back(std::make_unique<GaussianProcess>());
          block = blocks_.back().get();
        }
        const Candidate& one = call_case.candidates[candidate];
        const double asked = one.config.channels > 0 ? LogChannels(one.config.channels) : usual;
        const uint32_t cell =
            block->Add(members[i], candidate, logs[i] - middle, asked, CurveOf(one));
        places_[members[i]][candidate] = {static_cast<uint32_t>(blocks_.size() - 1), cell};
      }
    }
  }
  for (const auto& block : blocks_) block->Begin();
}

Surrogate::~Surrogate() = default;

void Surrogate::Fit(const SamplesByCandidate& known, bool learn) {
  expected_.clear();
  for (const auto& block : blocks_) block->Fit(known, learn);
}

double Surrogate::Mean(size_t call_case, size_t candidate) const {
  const Place& place = At(call_case, candidate);
  return blocks_[place.block]->Mean(place.cell);
}

double Surrogate::Variance(size_t call_case, size_t candidate) const {
  const Place& place = At(call_case, candidate);
  return blocks_[place.block]->Variance(place.cell);
}

double Surrogate::DifferenceVariance(size_t call_case, size_t a, size_t b) const {
  const Place& p = At(call_case, a);
  const Place& q = At(call_case, b);
  double sum = Variance(call_case, a) + Variance(call_case, b);
  if (p.block == q.block) sum -= 2 * blocks_[p.block]->Covariance(p.cell, q.cell);
  return std::max(sum, kLeastVariance);
}

double Surrogate::Noise(size_t call_case, size_t candidate) const {
  const Place& place = At(call_case, candidate);
  return blocks_[place.block]->Noise(place.cell);
}

void Surrogate::Expect(size_t call_case, size_t candidate) {
  const Place& place = At(call_case, candidate);
  blocks_[place.block]->Append(place.cell, 1);
  expected_.push_back(place);
}

void Surrogate::Withdraw() {
  for (size_t i = expected_.size(); i-- > 0;) blocks_[expected_[i].block]->Pop();
  expected_.clear();
}

void Surrogate::Arrive(const std::vector<double>& log_seconds) {
  for (size_t i = 0; i < expected_.size() && i < log_seconds.size(); ++i) {
    blocks_[expected_[i].block]->Settle(log_seconds[i]);
  }
  expected_.clear();
}

}  // namespace diapason::search
