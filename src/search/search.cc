#include "search/search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/random.h"
#include "base/stats.h"
#include "base/text.h"
#include "search/session.h"

namespace diapason::search {
namespace {

bool Tight(const Evidence& evidence, const SearchOptions& options) {
  if (static_cast<int>(evidence.seconds.size()) < options.least_samples) return false;
  const Interval interval = MedianInterval95(evidence.seconds);
  return interval.high - interval.low <= 2 * options.tight * Median(evidence.seconds);
}

std::string LaunchOf(const Contender& contender, const SearchOptions& options) {
  if (!options.by_configuration) return contender.environment;
  const Config& config = contender.config;
  return contender.environment + Format(" %d %d %d %lld", config.algorithm, config.protocol,
                                        config.channels,
                                        static_cast<long long>(config.segment_bytes));
}

}  // namespace

Status CheckContests(const std::vector<Contest>& contests, const Knowledge& known) {
  if (known.size() != contests.size()) {
    return Invalid(
        Format("knowledge of %zu contests was given for %zu", known.size(), contests.size()));
  }
  for (size_t i = 0; i < contests.size(); ++i) {
    if (contests[i].contenders.empty()) {
      return Invalid(Format("contest %zu has no contender, not even the default", i));
    }
    if (known[i].size() != contests[i].contenders.size()) {
      return Invalid(Format("contest %zu: knowledge of %zu contenders was given for %zu", i,
                            known[i].size(), contests[i].contenders.size()));
    }
    for (const Evidence& evidence : known[i]) {
      for (const double seconds : evidence.seconds) {
        if (std::isfinite(seconds) && seconds > 0) continue;
        return Invalid(Format("contest %zu: a time of %g s is known, which cannot be", i, seconds));
      }
    }
  }
  return {};
}

Status Session::Prepare() {
  if (options_.samples < 0 || options_.seconds < 0 || std::isnan(options_.seconds)) {
    return Invalid("a search's budget cannot be negative");
  }
  if (known_->empty()) {
    for (const Contest& contest : contests_) known_->emplace_back(contest.contenders.size());
  }
  for (const std::vector<Evidence>& contest : *known_) dry_.emplace_back(contest.size());
  return CheckContests(contests_, *known_);
}

bool Session::Over() const {
  if (stopped_) return true;
  if (options_.samples > 0 && taken_ >= options_.samples) return true;
  return options_.seconds > 0 && instrument_->Now() - begin_ >= options_.seconds;
}

double Session::SpentShare() const {
  double share = 0;
  if (options_.samples > 0) {
    share = static_cast<double>(taken_) / static_cast<double>(options_.samples);
  }
  if (options_.seconds > 0) {
    share = std::max(share, (instrument_->Now() - begin_) / options_.seconds);
  }
  return share;
}

Status Session::Take(size_t contest, size_t contender) {
  measure::Trial trial = contests_[contest].trial;
  trial.config = contests_[contest].contenders[contender].config;
  trial.environment = contests_[contest].contenders[contender].environment;
  Result<measure::Reading> reading = instrument_->Measure(trial);
  if (!reading.ok()) {
    if (reading.status().code() != ErrorCode::kNotFound) return reading.status();
    dry_[contest][contender] = true;
    return {};
  }
  ++taken_;
  Evidence& evidence = (*known_)[contest][contender];
  if (reading.value().outcome != dataset::Outcome::kFine) {
    evidence.outcome = reading.value().outcome;
  } else if (!std::isfinite(reading.value().seconds) || reading.value().seconds <= 0) {
    return Internal(Format("%s: a call of %llu bytes is said to take %g s",
                           instrument_->subject().backend.c_str(),
                           static_cast<unsigned long long>(trial.bytes), reading.value().seconds));
  } else {
    evidence.seconds.push_back(reading.value().seconds);
  }
  if (observer_ && !observer_(contest, contender, reading.value())) stopped_ = true;
  return {};
}

bool Session::Available(size_t contest, size_t contender) const {
  const Evidence& evidence = (*known_)[contest][contender];
  return evidence.outcome == dataset::Outcome::kFine && !dry_[contest][contender] &&
         static_cast<int>(evidence.seconds.size()) < options_.most_samples;
}

Status SearchExhaustively(measure::Instrument* instrument, const std::vector<Contest>& contests,
                          const SearchOptions& options, const Observer& observer,
                          Knowledge* known) {
  Session session(instrument, contests, options, observer, known);
  if (Status status = session.Prepare(); !status.ok()) return status;
  const auto wanted = [&](size_t contest, size_t contender) {
    return session.Available(contest, contender) && !Tight((*known)[contest][contender], options);
  };
  for (uint64_t round = 0; !session.Over(); ++round) {
    // Those that can run in one launch together; shuffled inside, so that no contender always comes
    // after the same one.
    std::map<std::string, std::vector<std::tuple<uint64_t, size_t, size_t>>> launches;
    const CounterRandom random(options.seed, round);
    uint64_t draw = 0;
    for (size_t i = 0; i < contests.size(); ++i) {
      for (size_t j = 0; j < contests[i].contenders.size(); ++j) {
        ++draw;
        if (!wanted(i, j)) continue;
        launches[LaunchOf(contests[i].contenders[j], options)].emplace_back(random.Bits(draw), i,
                                                                            j);
      }
    }
    if (launches.empty()) break;
    for (auto& [launch, order] : launches) {
      std::sort(order.begin(), order.end());
      for (int again = 0; again < std::max(1, options.visit); ++again) {
        for (const auto& [place, contest, contender] : order) {
          if (session.Over()) return {};
          if (!wanted(contest, contender)) continue;
          if (Status status = session.Take(contest, contender); !status.ok()) return status;
        }
      }
    }
  }
  return {};
}

}  // namespace diapason::search
