#include "tune/verify.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/stats.h"

namespace diapason::tune {
namespace {

using measure::Measurement;
using measure::Measurer;
using measure::PolicyCheck;
using measure::PolicyVerdict;
using measure::TimingFigure;
using measure::Trial;

constexpr double kShortest = 1e-12;
constexpr int kFirstWarmups = 3;
// A gain whose interval begins above this is settled; so is one that ends below 1.
constexpr double kClearly = 1.03;

// One side of a claim: its figure, and how many calls its blocks have.
struct VerifiedSide {
  Trial trial;
  TimingFigure* figure = nullptr;
  int iterations = 0;  // 0: not known yet
  std::vector<double> fastest;
};

class Verification {
 public:
  Verification(const std::vector<Claim>& claims, const MeasurerSource& source,
               const VerifyOptions& options, const VerifyObserver& observer)
      : source_(source), options_(options), observer_(observer), checks_(claims.size()) {
    sides_.resize(claims.size());
    for (size_t i = 0; i < claims.size(); ++i) {
      checks_[i].trial = claims[i].tuned;
      sides_[i][0] = {claims[i].library, &checks_[i].library, 0, {}};
      sides_[i][1] = {claims[i].tuned, &checks_[i].policy, 0, {}};
      several_environments_ =
          several_environments_ || claims[i].library.environment != claims[i].tuned.environment;
    }
  }

  Result<std::vector<PolicyCheck>> Run() {
    begin_ = options_.clock();
    resting_.resize(checks_.size());
    RETURN_IF_ERROR(Start());
    for (int round = 0; round < options_.most_rounds && !stopped_ && !Late(); ++round) {
      if (round >= measure::kLeastJudgedRounds && Share() >= 1) break;
      if (round >= options_.first_look &&
          (round - options_.first_look) % options_.look_every == 0 && RestSettled()) {
        break;
      }
      // Spread over the time there is, or over the rounds before the first look where that is
      // sooner.
      const bool due = launches_ < options_.launches &&
                       (Share() * options_.launches >= launches_ ||
                        round * options_.launches >= launches_ * options_.first_look);
      if (round > 0 && due) {
        RETURN_IF_ERROR(Start());
      }
      RETURN_IF_ERROR(Round(round));
    }
    const measure::LaunchVariation usual = measure::VariationOfLaunches(checks_);
    for (size_t i = 0; i < checks_.size(); ++i) Finish(i, usual);
    return std::move(checks_);
  }

 private:
  double Share() const { return (options_.clock() - begin_) / std::max(options_.seconds, 1e-9); }

  bool Late() const {
    return options_.hard_seconds > 0 && options_.clock() - begin_ > options_.hard_seconds;
  }

  Status Start() {
    measurer_.reset();  // the old ranks end before new ones begin
    ASSIGN_OR_RETURN(measurer_, source_());
    ++launches_;
    fresh_.clear();
    return {};
  }

  // Lets the claims rest that are settled; true: all are.
  bool RestSettled() {
    bool all = true;
    const measure::LaunchVariation usual = measure::VariationOfLaunches(checks_);
    for (size_t i = 0; i < checks_.size(); ++i) {
      if (resting_[i] || Failed(i)) continue;
      PolicyCheck now = checks_[i];
      now.Conclude(usual);
      // What differs from launch to launch is not settled by rounds.
      const bool launches = now.launches_differ && launches_ < options_.launches;
      resting_[i] = !launches && (now.interval.low > kClearly || now.interval.high < 1);
      all = all && resting_[i];
    }
    return all;
  }

  bool Failed(size_t claim) const { return checks_[claim].Failure() != nullptr; }

  Status Round(int round) {
    const size_t first = static_cast<size_t>(round % 2);
    if (several_environments_) {
      // Every change of the environment is a launch: one of each a round.
      for (const size_t side : {first, 1 - first}) {
        for (size_t i = 0; i < checks_.size() && !stopped_; ++i) {
          RETURN_IF_ERROR(Measure(i, side, round));
        }
      }
    } else {
      for (size_t i = 0; i < checks_.size() && !stopped_; ++i) {
        for (const size_t side : {first, 1 - first}) {
          RETURN_IF_ERROR(Measure(i, side, round));
        }
      }
    }
    for (size_t i = 0; i < checks_.size(); ++i) {
      PolicyCheck& check = checks_[i];
      const size_t both = std::min(check.library.rounds.size(), check.policy.rounds.size());
      if (Failed(i) || both <= check.gains.size()) continue;
      check.gains.push_back(check.library.rounds.back() / check.policy.rounds.back());
      check.launches.push_back(launches_);
    }
    return {};
  }

  Status Measure(size_t claim, size_t which, int round) {
    if (Failed(claim) || resting_[claim] || stopped_ || Late()) return {};
    VerifiedSide& side = sides_[claim][which];
    Trial trial = side.trial;
    // The first time on new ranks: connections are made, and what comes out is looked at.
    const bool fresh = fresh_.insert({claim, which}).second;
    trial.check = fresh && trial.workload.empty();
    trial.warmups = fresh ? kFirstWarmups : 1;
    if (side.iterations == 0) {
      trial.iterations = 1;
      ASSIGN_OR_RETURN(const Measurement first, measurer_->Measure(trial));
      if (!Take(claim, &side, trial, first, round, false)) return {};
      const double fit = options_.block_seconds / std::max(first.seconds, 1e-9);
      side.iterations =
          static_cast<int>(std::clamp(std::round(fit), 1.0, double(options_.most_iterations)));
      trial.check = false;
      trial.warmups = 1;
    }
    trial.iterations = side.iterations;
    ASSIGN_OR_RETURN(const Measurement measurement, measurer_->Measure(trial));
    (void)Take(claim, &side, trial, measurement, round, true);
    return {};
  }

  // Files a reading; false where the side has failed.
  bool Take(size_t claim, VerifiedSide* side, const Trial& trial, const Measurement& measurement,
            int round, bool counts) {
    TimingFigure& figure = *side->figure;
    if (measurement.wrong >= 0) figure.wrong = std::max(figure.wrong, measurement.wrong);
    figure.outcome = measurement.outcome;
    figure.note = measurement.note;
    if (figure.fine() && counts) {
      figure.rounds.push_back(std::max(measurement.seconds, kShortest));
      side->fastest.push_back(measurement.fastest);
    }
    if (observer_ && (counts || !figure.fine())) {
      dataset::Sample sample = measure::SampleOf(trial, measurer_->subject(), measurement);
      sample.round = round;
      stopped_ = !observer_(claim, side == &sides_[claim][1], round, sample) || stopped_;
    }
    return figure.fine();
  }

  void Finish(size_t claim, const measure::LaunchVariation& usual) {
    for (const VerifiedSide& side : sides_[claim]) side.figure->Conclude(side.fastest);
    checks_[claim].Conclude(usual);
  }

  const MeasurerSource& source_;
  const VerifyOptions& options_;
  const VerifyObserver& observer_;
  std::vector<PolicyCheck> checks_;
  std::vector<std::array<VerifiedSide, 2>> sides_;
  bool several_environments_ = false;
  std::shared_ptr<Measurer> measurer_;
  std::set<std::pair<size_t, size_t>> fresh_;  // that have run on these ranks
  int launches_ = 0;
  bool stopped_ = false;
  double begin_ = 0;
  std::vector<bool> resting_;
};

}  // namespace

Result<std::vector<PolicyCheck>> Verify(const std::vector<Claim>& claims,
                                        const MeasurerSource& source, const VerifyOptions& options,
                                        const VerifyObserver& observer) {
  if (claims.empty()) return std::vector<PolicyCheck>();
  return Verification(claims, source, options, observer).Run();
}

}  // namespace diapason::tune
