// Spends samples where the winner is undecided.
//
// 1. The default, in every case (where the budget is too small for that, in as many sizes, well
//    spread).
// 2. A sparse design: every case in turn samples the candidate of which least is known, given
//    what is known of its neighbours.
// 3. A few samples are repeated, to learn how noisy they are.
// 4. Then every sample goes to where it is expected to improve a choice most: an unsampled
//    candidate that may be better than the present best, a rival that is too near to call, or the
//    present best itself when it may not be what it seems (the knowledge gradient). Where the
//    budget is in seconds, most per second.
// Between batches the surrogate (surrogate.h) takes in what came.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/random.h"
#include "base/stats.h"
#include "base/text.h"
#include "search/gain.h"
#include "search/search.h"
#include "search/session.h"
#include "search/surrogate.h"

namespace diapason::search {
namespace {

// The share of the budget that has gone into defaults and design when the hunt begins.
constexpr double kDesignShare = 0.3;
// Samples that are taken twice after that, at most; of a small budget, one in so many.
constexpr int64_t kRepeats = 12;
constexpr int64_t kRepeatEvery = 25;
// Without a limit the search ends when no sample is expected to improve any choice by this share of
// what counts as tight. A budget is spent: what looks decided to the surrogate may surprise it.
constexpr double kWorthSampling = 0.001;
// ... and every unsampled candidate is predicted to be slower than the best by at least this (log:
// half as much again).
constexpr double kHopeless = 0.4;
// The surrogate is fitted again whenever the samples have grown by this factor.
constexpr double kLearnAgain = 1.2;

struct Pick {
  size_t call_case = 0;
  size_t candidate = 0;
};

class Hunt {
 public:
  Hunt(const std::vector<CallCase>& call_cases, const SearchOptions& options,
       SearchSession* session, SamplesByCandidate* known)
      : call_cases_(call_cases),
        options_(options),
        session_(session),
        known_(known),
        surrogate_(call_cases),
        random_(options.seed, 0x616461707469),
        limited_(options.samples > 0 || options.seconds > 0) {
    std::map<std::tuple<int, int, int, int64_t, std::string>, uint32_t> kinds;
    const std::string& first = call_cases[0].candidates[0].environment;
    for (const CallCase& call_case : call_cases) {
      kinds_.emplace_back();
      for (const Candidate& one : call_case.candidates) {
        const auto number = static_cast<uint32_t>(kinds.size());
        several_environments_ = several_environments_ || one.environment != first;
        kinds_.back().push_back(
            kinds
                .emplace(std::tuple(one.config.algorithm, one.config.protocol, one.config.channels,
                                    one.config.segment_bytes, one.environment),
                         number)
                .first->second);
      }
      pending_.emplace_back(call_case.candidates.size());
    }
    spent_.resize(call_cases.size());
    fine_.resize(kinds.size());
    failed_.resize(kinds.size());
  }

  Status Run() {
    surrogate_.Fit(*known_, false);
    RETURN_IF_ERROR(SampleDefaults());
    RETURN_IF_ERROR(SampleDesign());
    RETURN_IF_ERROR(SampleRepeats());
    return Chase();
  }

 private:
  bool Sampled(size_t call_case, size_t candidate) const {
    return !(*known_)[call_case][candidate].seconds.empty() || pending_[call_case][candidate] > 0;
  }
  // Whether a sample of it can be asked for, those on their way included.
  bool Open(const Pick& pick) const {
    const CandidateSamples& evidence = (*known_)[pick.call_case][pick.candidate];
    return session_->Available(pick.call_case, pick.candidate) &&
           static_cast<int>(evidence.seconds.size()) + pending_[pick.call_case][pick.candidate] <
               options_.most_samples;
  }
  int64_t Left() const {
    return options_.samples > 0 ? options_.samples - session_->taken() : INT64_MAX;
  }
  // Ties are broken by the seed.
  double Jitter() { return 1 + 1e-6 * random_.Uniform(draws_++); }

  void Expect(const Pick& pick, std::vector<Pick>* batch) {
    surrogate_.Expect(pick.call_case, pick.candidate);
    ++pending_[pick.call_case][pick.candidate];
    batch->push_back(pick);
  }

  Status Measure(const std::vector<Pick>& batch) {
    std::vector<std::tuple<std::string, uint64_t, size_t>> order;
    for (size_t i = 0; i < batch.size(); ++i) {
      order.emplace_back(call_cases_[batch[i].call_case].candidates[batch[i].candidate].environment,
                         random_.Bits(draws_++), i);
    }
    std::sort(order.begin(), order.end());
    std::vector<double> values(batch.size(), std::nan(""));
    bool all = true;
    for (const auto& [environment, place, index] : order) {
      const Pick& pick = batch[index];
      --pending_[pick.call_case][pick.candidate];
      const CandidateSamples& evidence = (*known_)[pick.call_case][pick.candidate];
      const size_t before = evidence.seconds.size();
      const bool alive = session_->Available(pick.call_case, pick.candidate);
      if (!session_->Over() && alive) {
        const double begin = session_->Now();
        RETURN_IF_ERROR(session_->Take(pick.call_case, pick.candidate));
        spent_[pick.call_case] += session_->Now() - begin;
      }
      const uint32_t kind = kinds_[pick.call_case][pick.candidate];
      if (evidence.seconds.size() > before) {
        values[index] = std::log(evidence.seconds.back());
        ++fine_[kind];
        ++since_learning_;
      } else {
        all = false;
        if (alive && evidence.outcome != dataset::SampleOutcome::kFine) ++failed_[kind];
      }
    }
    if (!all) {
      surrogate_.Withdraw();
      std::vector<double> came;
      for (size_t i = 0; i < batch.size(); ++i) {
        if (std::isnan(values[i])) continue;
        surrogate_.Expect(batch[i].call_case, batch[i].candidate);
        came.push_back(values[i]);
      }
      values = std::move(came);
    }
    surrogate_.Arrive(values);
    return {};
  }

  Status SampleDefaults() {
    // A third of a small budget; a default everywhere and nothing else would decide nothing.
    const auto most = static_cast<size_t>(
        std::clamp<int64_t>(options_.samples > 0 ? options_.samples / 3 : INT64_MAX, 1,
                            static_cast<int64_t>(call_cases_.size())));
    std::vector<Pick> batch;
    while (batch.size() < most) {
      Pick best;
      double widest = 0;
      for (size_t i = 0; i < call_cases_.size(); ++i) {
        if (Sampled(i, 0) || !Open({i, 0})) continue;
        const double variance = surrogate_.Variance(i, 0) * Jitter();
        if (variance <= widest) continue;
        widest = variance;
        best = {i, 0};
      }
      if (widest == 0) break;
      Expect(best, &batch);
    }
    return Measure(batch);
  }

  Status SampleDesign() {
    while (!session_->Over()) {
      std::vector<Pick> batch;
      std::vector<std::pair<uint64_t, size_t>> order;
      for (size_t i = 0; i < call_cases_.size(); ++i) order.emplace_back(random_.Bits(draws_++), i);
      std::sort(order.begin(), order.end());
      for (const auto& [place, i] : order) {
        if (static_cast<int64_t>(batch.size()) >= Left()) break;
        if (HadItsShare(i)) continue;
        Pick best;
        double widest = 0;
        for (size_t j = 0; j < call_cases_[i].candidates.size(); ++j) {
          if (Sampled(i, j) || !Open({i, j})) continue;
          const double variance = surrogate_.Variance(i, j) * Promise(i, j) * Jitter();
          if (variance <= widest) continue;
          widest = variance;
          best = {i, j};
        }
        if (widest > 0) Expect(best, &batch);
      }
      if (batch.empty()) break;
      RETURN_IF_ERROR(Measure(batch));
      ++design_rounds_;
      if (limited_ ? session_->SpentShare() >= kDesignShare : design_rounds_ >= 3) break;
    }
    return {};
  }

  // Where seconds are counted, no case's design costs more than another's: large sizes get fewer
  // samples.
  bool HadItsShare(size_t call_case) const {
    if (options_.seconds <= 0) return false;
    return spent_[call_case] * static_cast<double>(call_cases_.size()) >=
           kDesignShare * options_.seconds;
  }

  // The fastest of some cases once more: only samples of one candidate tell how noisy samples
  // are, and those are the ones that matter.
  Status SampleRepeats() {
    std::vector<std::pair<uint64_t, size_t>> order;
    for (size_t i = 0; i < call_cases_.size(); ++i) order.emplace_back(random_.Bits(draws_++), i);
    std::sort(order.begin(), order.end());
    const int64_t most =
        options_.samples > 0 ? std::min(options_.samples / kRepeatEvery, kRepeats) : kRepeats;
    std::vector<Pick> batch;
    for (const auto& [place, i] : order) {
      if (static_cast<int64_t>(batch.size()) >= most) break;
      Pick best;
      double fastest = INFINITY;
      for (size_t j = 0; j < call_cases_[i].candidates.size(); ++j) {
        const CandidateSamples& evidence = (*known_)[i][j];
        if (evidence.seconds.empty() || !Open({i, j})) continue;
        const double seconds = LowerMedian(evidence.seconds);
        if (seconds >= fastest) continue;
        fastest = seconds;
        best = {i, j};
      }
      if (std::isfinite(fastest)) Expect(best, &batch);
    }
    return Measure(batch);
  }

  // How likely it is to work at all, from the same configuration in other cases.
  double Promise(size_t call_case, size_t candidate) const {
    const uint32_t kind = kinds_[call_case][candidate];
    return (fine_[kind] + 1.0) / (fine_[kind] + failed_[kind] + 1.0);
  }

  Status Chase() {
    Learn();
    // Small batches know more; but every change of the environment can cost a launch.
    const size_t most = several_environments_ ? call_cases_.size() : (call_cases_.size() + 3) / 4;
    while (!session_->Over()) {
      std::vector<Pick> batch;
      while (batch.size() < most && static_cast<int64_t>(batch.size()) < Left()) {
        Pick best;
        double highest = 0;
        for (size_t i = 0; i < call_cases_.size(); ++i) Rate(i, &best, &highest);
        if (highest <= 0) break;
        Expect(best, &batch);
      }
      if (batch.empty()) break;
      RETURN_IF_ERROR(Measure(batch));
      if (static_cast<double>(since_learning_) >=
          (kLearnAgain - 1) * static_cast<double>(learned_)) {
        Learn();
      }
    }
    return {};
  }

  void Learn() {
    surrogate_.Fit(*known_, true);
    learned_ = 0;
    for (const std::vector<CandidateSamples>& call_case : *known_) {
      for (const CandidateSamples& evidence : call_case) learned_ += evidence.seconds.size();
    }
    since_learning_ = 0;
  }

  // Finds the sample of this case that promises most.
  void Rate(size_t call_case, Pick* best, double* highest) {
    const Standing standing = Stand(surrogate_, call_case, (*known_)[call_case],
                                    [&](size_t j) { return Sampled(call_case, j); });
    for (size_t j = 0; j < call_cases_[call_case].candidates.size(); ++j) {
      if (!Open({call_case, j})) continue;
      double gain = ExpectedGain(surrogate_, call_case, j, standing) * Promise(call_case, j);
      if (!limited_ && gain < kWorthSampling * options_.tight &&
          !Plausible(call_case, j, standing)) {
        continue;
      }
      if (options_.seconds > 0) gain /= std::exp(surrogate_.Mean(call_case, j));
      gain *= Jitter();
      if (gain <= *highest) continue;
      *highest = gain;
      *best = {call_case, j};
    }
  }

  // It has no sample yet, and may still be the best.
  bool Plausible(size_t call_case, size_t candidate, const Standing& standing) const {
    return !Sampled(call_case, candidate) &&
           surrogate_.Mean(call_case, candidate) - standing.chosen_mean < kHopeless;
  }

  const std::vector<CallCase>& call_cases_;
  const SearchOptions& options_;
  SearchSession* session_;
  SamplesByCandidate* known_;
  Surrogate surrogate_;
  CounterRandom random_;
  bool limited_;
  bool several_environments_ = false;
  std::vector<double> spent_;  // seconds, by case
  uint64_t draws_ = 0;
  std::vector<std::vector<uint32_t>> kinds_;  // equal configurations have equal numbers
  std::vector<int> fine_, failed_;            // by kind
  std::vector<std::vector<int>> pending_;
  int design_rounds_ = 0;
  size_t since_learning_ = 0;  // samples
  size_t learned_ = 0;
};

}  // namespace

Status SearchAdaptively(measure::Measurer* measurer, const std::vector<CallCase>& call_cases,
                        const SearchOptions& options, const MeasurementObserver& observer,
                        SamplesByCandidate* known) {
  SearchSession session(measurer, call_cases, options, observer, known);
  RETURN_IF_ERROR(session.Prepare());
  if (call_cases.empty()) return {};
  return Hunt(call_cases, options, &session, known).Run();
}

}  // namespace diapason::search
