#include "plugin/learning/context_explorer.h"

#include <algorithm>
#include <charconv>

#include "base/clock.h"
#include "base/mutex_lock.h"
#include "base/text.h"
#include "base/units.h"
#include "plugin/abi/selection.h"
#include "plugin/learning/learning.h"
#include "plugin/profiler/event_mask.h"

namespace diapason::plugin {
namespace {

// The first calls of a communicator connect, allocate and warm up; their times are not used.
constexpr uint64_t kWarmUpCalls = 64;
constexpr uint64_t kWarmUpEpoch = 16;
constexpr uint64_t kWaitCalls = 64;  // calls in an epoch while there is nothing to propose
// Equal distances between boundaries before a source is trusted.
constexpr size_t kMarksToTrust = 5;
constexpr size_t kMarksKept = 64;
constexpr size_t kIdleMarks = 8;
constexpr double kResultsPatience = 3.0;  // seconds to wait for the other ranks' results
// seconds for which one context may hold the exploration token
constexpr double kTokenPatience = 30.0;
// pairs within this factor of the best are tried with fewer channels, too
constexpr double kNearBest = 1.25;
constexpr double kFullStore = 0.75;
// Calls in an epoch when the store is nearly full.
constexpr uint64_t kLongWait = uint64_t{1} << 20;
// Once a context is settled, epochs are written ahead so that an outage of the store does no harm:
// at most this many seconds of calls, and this many epochs. A settled context that changes is
// reopened after them.
constexpr double kAheadSeconds = 120;
constexpr uint32_t kMostAhead = 4;
constexpr uint64_t kLongRest = 1024;  // calls: shorter epochs are not written ahead
constexpr uint64_t kFirstFrozen = 256;
constexpr uint64_t kLongestFrozen = 16384;
constexpr double kRateInterval = 1.0;
constexpr size_t kMostOutstanding = 16;

double Cost(const std::vector<float>& costs, const Config& config) {
  if (config.algorithm < 0 || config.algorithm >= kOfferedAlgorithms || config.protocol < 0 ||
      config.protocol >= kOfferedProtocols) {
    return -1;
  }
  return costs.empty() ? -1 : costs[PairNumber(config.algorithm, config.protocol)];
}

}  // namespace

ContextExplorer::ContextExplorer(Learning* learning, LearningContext* context)
    : learning_(learning), context_(context), token_(learning->options().store, context->prefix) {
  for (int rank = 0; rank < learning->options().shape.ranks; ++rank)
    offers_missing_.push_back(rank);
}

bool ContextExplorer::exploring() const { return learner_ != nullptr && !learner_->settled(); }

bool ContextExplorer::wants_pattern() const {
  const std::string& wanted = learning_->options().reward;
  if (wanted == "pattern") return learner_ == nullptr || !learner_->settled();
  return wanted == "auto" && (!source_.has_value() || *source_ >= RewardSource::kPattern) &&
         (learner_ == nullptr || !learner_->settled());
}

std::vector<learn::ArmSummary> ContextExplorer::Summary() const {
  return learner_ == nullptr ? std::vector<learn::ArmSummary>() : learner_->Summary();
}

Config ContextExplorer::best() const { return learner_ == nullptr ? Config() : learner_->best(); }

bool ContextExplorer::GatherOffers(double now) {
  agree::CellStore* store = learning_->options().store;
  std::erase_if(offers_missing_, [&](int rank) {
    if (learning_->store_away(now)) return false;
    const auto cell = store->Read(context_->prefix + Format("o.%d", rank));
    learning_->Reached(cell.ok() ? Status() : cell.status(), now);
    if (!cell.ok() || !cell.value().has_value()) return false;
    const std::string& text = *cell.value();
    uint64_t offer = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), offer, 16);
    // An offer that cannot be parsed offers nothing.
    offered_ &= error == std::errc() && end == text.data() + text.size() ? offer : 0;
    return true;
  });
  return offers_missing_.empty();
}

void ContextExplorer::TakeMarks() {
  std::deque<LearningContext::Mark> marks;
  std::deque<LearningContext::Mark> reported;
  {
    const MutexLock lock(&context_->mutex);
    marks.swap(context_->marks);
    reported.swap(context_->reported);
  }
  for (const LearningContext::Mark& mark : marks) {
    std::deque<LearningContext::Mark>& known = marks_[static_cast<size_t>(mark.source)];
    if (source_ == mark.source && !known.empty() && mark.calls == known.back().calls + unit_) {
      context_->reporter->Credit(known.back().calls, mark.calls, mark.time - known.back().time);
    }
    known.push_back(mark);
    if (known.size() > kMarksKept) known.pop_front();
  }
  for (const LearningContext::Mark& report : reported) {
    ++reports_;
    if (source_ == RewardSource::kReport) {
      context_->reporter->Credit(report.calls - 1, report.calls, report.time);
    }
  }
}

void ContextExplorer::Line(double seconds) {
  const uint64_t made = learning_->CallsMade(*context_);
  // Lines count from the communicator's first call on.
  const auto range = matcher_.Line(made);
  if (range.has_value() && source_ == RewardSource::kFile) {
    context_->reporter->Credit(range->first, range->end, seconds);
  }
}

uint64_t ContextExplorer::UnitOf(RewardSource source) const {
  switch (source) {
    case RewardSource::kReport:
      return reports_ >= 4 ? 1 : 0;
    case RewardSource::kFile:
      return matcher_.calls_per_line();
    case RewardSource::kGpu:
      if (learning_->has_events()) return 1;
      return !EventMask::Instance().TimesForbidden() &&
                     TimesPossible(learning_->options().shape.ranks)
                 ? 1
                 : 0;
    case RewardSource::kStep:
    case RewardSource::kPattern:
      break;
  }
  const std::deque<LearningContext::Mark>& marks = marks_[static_cast<size_t>(source)];
  if (marks.size() <= kMarksToTrust) return 0;
  const uint64_t unit = marks.back().calls - marks[marks.size() - 2].calls;
  for (size_t i = marks.size() - kMarksToTrust; i < marks.size(); ++i) {
    if (marks[i].calls - marks[i - 1].calls != unit) return 0;
  }
  return unit;
}

std::optional<RewardSource> ContextExplorer::BestSource() const {
  const std::string& wanted = learning_->options().reward;
  for (int i = 0; i < kRewardSources; ++i) {
    const auto source = static_cast<RewardSource>(i);
    if (wanted != "auto" && wanted != RewardSourceName(source)) continue;
    if (UnitOf(source) > 0) return source;
  }
  return std::nullopt;
}

bool ContextExplorer::OfferedByAll(const Config& config) const {
  if (config.algorithm < 0 || config.algorithm >= kOfferedAlgorithms || config.protocol < 0 ||
      config.protocol >= kOfferedProtocols) {
    return false;
  }
  return (offered_ >> PairNumber(config.algorithm, config.protocol) & 1) != 0;
}

std::vector<learn::ArmConfig> ContextExplorer::Candidates() const {
  const LearningOptions& options = learning_->options();
  std::vector<float> costs;
  {
    const MutexLock lock(&context_->mutex);
    costs = context_->costs;
  }
  Config by_default;
  double cheapest = 0;
  for (int a = 0; a < kOfferedAlgorithms; ++a) {
    for (int p = 0; p < kOfferedProtocols; ++p) {
      const double cost = Cost(costs, {a, p, 0});
      if (!Available(static_cast<float>(cost)) || (cheapest > 0 && cost >= cheapest)) continue;
      cheapest = cost;
      by_default = {a, p, 0};
    }
  }
  // The observed default is more reliable than the table.
  if (context_->default_algorithm >= 0) {
    by_default = {context_->default_algorithm, context_->default_protocol, 0};
  }
  const Config incumbent = context_->newest.schedule.incumbent;
  std::vector<learn::ArmConfig> candidates;
  const auto consider = [&](const Config& config) {
    if (config.IsDefault() || config == by_default || !OfferedByAll(config)) return;
    // From 2.29 on the answer also selects between two kinds of kernels, and LL would switch the
    // kind.
    if (options.host.has_new_scheduler() && config.protocol == kLl && config != incumbent) return;
    if (std::any_of(candidates.begin(), candidates.end(),
                    [&](const learn::ArmConfig& one) { return one.config == config; })) {
      return;
    }
    const double cost = Cost(costs, config);
    candidates.push_back({config, cost > 0 && cheapest > 0 ? cost / cheapest : 0});
  };
  if (options.arms == "policy" || options.arms == "auto") {
    const uint64_t bytes = BandLast(context_->band);
    for (const policy::Rule& rule : learning_->policy().rules) {
      if (rule.collective == context_->collective && rule.MatchesShape(options.shape) &&
          rule.min_bytes <= bytes && bytes <= rule.max_bytes) {
        consider(rule.config);
      }
    }
  }
  if (options.arms == "seed") {
    for (const Config& config :
         {Config{kTree, kSimple, 0}, Config{kTree, kLl128, 0}, Config{kRing, kSimple, 0}}) {
      consider(config);
    }
  }
  if (options.arms == "offered" || (options.arms == "auto" && candidates.empty())) {
    for (int a = 0; a < kOfferedAlgorithms; ++a) {
      for (int p = 0; p < kOfferedProtocols; ++p) consider({a, p, 0});
    }
  }
  return candidates;
}

// The library's own channel count is an upper bound; fewer channels leave more of the GPU to
// compute, and are often faster.
void ContextExplorer::AddFewerChannels() {
  const LearningOptions& options = learning_->options();
  if (options.arms == "policy" || options.arms == "seed") return;
  if (context_->collective == Collective::kAllGather && !options.allgather_channels) return;
  const std::vector<learn::ArmSummary> arms = learner_->Summary();
  double best = 1;
  for (const learn::ArmSummary& arm : arms) {
    if (arm.config == learner_->best()) best = arm.ratio;
  }
  for (const learn::ArmSummary& arm : arms) {
    // With fewer channels another pair may be the best one.
    if (arm.config.channels != 0 || arm.ratio > best * kNearBest) continue;
    Config pair = arm.config;
    if (pair.IsDefault()) pair = {context_->default_algorithm, context_->default_protocol, 0};
    if (!OfferedByAll(pair) || std::find(channels_added_for_.begin(), channels_added_for_.end(),
                                         pair) != channels_added_for_.end()) {
      continue;
    }
    channels_added_for_.push_back(pair);
    const int channels = context_->ran_channels[pair.algorithm][pair.protocol];
    for (int fewer = channels / 2; fewer >= 1; fewer /= 2) {
      if (SafeChannels(options.host.library, fewer, pair.algorithm, options.shape) != fewer)
        continue;
      // Without a measurement, the default's own pair counts as fast as the default.
      learner_->Add({{pair.algorithm, pair.protocol, fewer}, arm.config.IsDefault() ? 1.0 : 0.0});
    }
  }
}

void ContextExplorer::StartLearning(RewardSource source, uint64_t unit) {
  const LearningOptions& options = learning_->options();
  learn::LearnOptions how = options.learn;
  how.unit = unit;
  how.seed = options.comm_id ^ static_cast<uint64_t>(context_->band) << 8 ^
             static_cast<uint64_t>(context_->collective);
  const Config incumbent = context_->newest.schedule.incumbent;
  const std::vector<learn::ArmConfig> candidates = Candidates();
  outstanding_.clear();
  source_ = source;
  unit_ = unit;
  learner_ = learn::MakeLearner(how, incumbent, candidates);
  channels_added_for_.clear();
  said_settled_ = false;
  const std::string what =
      Format("%s up to %s", std::string(CollectiveName(context_->collective)).c_str(),
             FormatBytes(BandLast(context_->band)).c_str());
  learning_->log().Info(Format(
      "learning %s: %s beside the default, by %s%s", what.c_str(),
      Count(candidates.size(), "configuration").c_str(),
      std::string(RewardSourceName(source)).c_str(),
      unit > 1 ? Format(" (%llu calls an iteration)", static_cast<unsigned long long>(unit)).c_str()
               : ""));
}

void ContextExplorer::Poll(double now, std::vector<Reporter::Finished> finished) {
  TakeMarks();
  if (!offers_known_) offers_known_ = GatherOffers(now);
  if (offers_known_ && context_->newest.number >= 1 && learning_->calls_of_all() >= kWarmUpCalls) {
    const std::optional<RewardSource> source = BestSource();
    if (source.has_value()) {
      const uint64_t unit = UnitOf(*source);
      // A better source has appeared, or the iterations have changed.
      if (!source_.has_value() || *source < *source_ ||
          (*source == *source_ && unit != unit_ && unit > 0)) {
        StartLearning(*source, unit);
      }
    }
  }
  TakeResults(now, std::move(finished));
  if (learner_ != nullptr && learner_->settled()) AddFewerChannels();
  Propose(now);
  LogIfSettled();
}

void ContextExplorer::TakeResults(double now, std::vector<Reporter::Finished> finished) {
  for (Reporter::Finished& one : finished) {
    const auto found = outstanding_.find(one.epoch);
    if (found == outstanding_.end()) continue;
    found->second.mine = true;
    found->second.since = now;
    found->second.ranks.push_back(std::move(one.results));
  }
  for (auto entry = outstanding_.begin(); entry != outstanding_.end();) {
    auto& [epoch, outstanding] = *entry;
    const bool over = context_->newest.number > epoch + 1;
    if (outstanding.mine && GatherResults(epoch, &outstanding, now)) {
      Conclude(epoch, outstanding);
      entry = outstanding_.erase(entry);
    } else if ((outstanding.mine || over) && now - outstanding.since > kResultsPatience) {
      if (learner_ != nullptr) learner_->Lost(epoch);
      entry = outstanding_.erase(entry);
    } else {
      ++entry;
    }
  }
}

bool ContextExplorer::GatherResults(uint32_t epoch, Outstanding* outstanding, double now) {
  agree::CellStore* store = learning_->options().store;
  const size_t segments = outstanding->schedule.segments.size();
  std::erase_if(outstanding->missing, [&](int rank) {
    if (learning_->store_away(now)) return false;
    const auto cell = store->Read(Reporter::ResultsKey(context_->prefix, epoch, rank));
    learning_->Reached(cell.ok() ? Status() : cell.status(), now);
    if (!cell.ok() || !cell.value().has_value()) return false;
    const auto results = learn::ParseResults(*cell.value(), segments);
    // Results that cannot be parsed count as "could not measure".
    outstanding->ranks.push_back(results.ok() ? results.value()
                                              : std::vector<learn::SegmentResult>(segments));
    return true;
  });
  return outstanding->missing.empty();
}

void ContextExplorer::Conclude(uint32_t epoch, const Outstanding& outstanding) {
  std::vector<learn::SegmentResult> results = learn::SlowestOf(outstanding.ranks);
  if (results.size() != outstanding.schedule.segments.size()) {
    if (learner_ != nullptr) learner_->Lost(epoch);
    return;
  }
  if (journal::Journal* journal = learning_->journal(); journal != nullptr) {
    const double skew = learn::SkewOf(outstanding.ranks);
    uint64_t index = outstanding.start;
    for (size_t i = 0; i < results.size(); ++i) {
      const Segment& segment = outstanding.schedule.segments[i];
      if (results[i].samples > 0 && segment.counts) {
        journal::JournalRecord record;
        record.kind = journal::RecordKind::kReward;
        record.time_ns = WallTimeNs();
        record.communicator = learning_->options().number;
        record.collective = static_cast<uint8_t>(context_->collective);
        record.bytes = BandLast(context_->band);
        record.epoch = epoch;
        record.index = index;
        record.algorithm = static_cast<int8_t>(segment.config.algorithm);
        record.protocol = static_cast<int8_t>(segment.config.protocol);
        record.channels = static_cast<int16_t>(segment.config.channels);
        record.seconds = results[i].seconds;
        record.samples = results[i].samples;
        record.skew = static_cast<float>(skew);
        record.iteration = unit_ > 1 || (source_.has_value() && CoversIterations(*source_));
        journal->Add(record);
      }
      index += segment.calls;
    }
  }
  if (learner_ == nullptr) return;
  if (outstanding.padded) results.erase(results.begin());
  learner_->Learn(epoch, results);
}

Schedule ContextExplorer::Wait() const {
  Schedule schedule;
  schedule.incumbent = learner_ != nullptr ? learner_->best() : context_->newest.schedule.incumbent;
  schedule.segments = {{schedule.incumbent, learner_ != nullptr ? kWaitCalls : kWarmUpEpoch, true}};
  return schedule;
}

bool ContextExplorer::Idle() const {
  if (!source_.has_value()) return false;
  const std::deque<LearningContext::Mark>& marks = marks_[static_cast<size_t>(*source_)];
  return marks.size() > kIdleMarks && marks[marks.size() - kIdleMarks].calls == marks.back().calls;
}

bool ContextExplorer::WantsMore(double now) {
  const uint64_t made = learning_->CallsMade(*context_);
  if (now - rate_since_ > kRateInterval) {
    if (rate_since_ > 0) {
      calls_per_second_ = static_cast<double>(made - rate_calls_) / (now - rate_since_);
    }
    rate_calls_ = made;
    rate_since_ = now;
  }
  const uint32_t newest = context_->newest.number;
  if (proposed_ <= newest) return true;
  const bool resting = learning_->frozen() ||
                       (learner_ != nullptr && learner_->settled() && longest_rest_ >= kLongRest);
  if (!resting || proposed_end_ == 0 || proposed_ >= newest + kMostAhead) return false;
  const double calls = proposed_end_ > made ? static_cast<double>(proposed_end_ - made) : 0;
  return calls < calls_per_second_ * kAheadSeconds;
}

void ContextExplorer::Propose(double now) {
  if (token_.held() && (Idle() || learning_->frozen())) (void)token_.Release();
  if (context_->newest.number == 0) return;
  while (WantsMore(now) && !learning_->store_away(now) && ProposeNext(now)) {
  }
}

// Whether this context may explore now. If the reward covers whole iterations, only one context of
// the job may explore at a time.
bool ContextExplorer::MayTry(double now) {
  if (learner_ == nullptr || learning_->frozen() || outstanding_.size() >= kMostOutstanding) {
    return false;
  }
  if (!source_.has_value() || !CoversIterations(*source_)) return true;
  if (token_.held() && (learner_->settled() || now - token_since_ > kTokenPatience)) {
    (void)token_.Release();
    return learner_->settled();
  }
  if (token_.held() || learner_->settled()) return true;
  const Result<bool> taken = token_.TryTake();
  if (!taken.ok() || !taken.value()) return false;
  token_since_ = now;
  return true;
}

Schedule ContextExplorer::Chosen(uint32_t epoch, bool turn) {
  if (turn) {
    Schedule schedule = learner_->Next(epoch);
    schedule.timed = *source_ == RewardSource::kGpu && schedule.Explores();
    return schedule;
  }
  Schedule schedule = Wait();
  if (learning_->options().store->Fullness() > kFullStore) {
    schedule.segments[0].calls = kLongWait;
  } else if (learning_->frozen()) {
    frozen_calls_ = std::clamp(frozen_calls_ * 2, kFirstFrozen, kLongestFrozen);
    schedule.segments[0].calls = frozen_calls_;
  }
  return schedule;
}

bool ContextExplorer::BeginWithAnIteration(uint64_t start, Schedule* schedule) const {
  if (unit_ <= 1 || !source_.has_value()) return false;
  uint64_t boundary = 0;  // the first call after which lines of a reward file count
  if (CoversIterations(*source_)) {
    const auto& marks = marks_[static_cast<size_t>(*source_)];
    if (!marks.empty()) boundary = marks.back().calls;
  }
  const uint64_t past = (start + unit_ - boundary % unit_) % unit_;
  if (past == 0) return false;
  schedule->segments.insert(schedule->segments.begin(),
                            Segment{schedule->incumbent, unit_ - past, false});
  return true;
}

// False: propose no further epoch now.
bool ContextExplorer::ProposeNext(double now) {
  const agree::EpochLog::Epoch& newest = context_->newest;
  const uint32_t next = std::max(newest.number, proposed_) + 1;
  agree::CellStore* store = learning_->options().store;
  const bool turn = store->Fullness() <= kFullStore && MayTry(now);
  if (!learning_->frozen()) frozen_calls_ = 0;
  Outstanding outstanding;
  outstanding.start = next == newest.number + 1 ? newest.end() : proposed_end_;
  outstanding.schedule = Chosen(next, turn);
  if (turn) outstanding.padded = BeginWithAnIteration(outstanding.start, &outstanding.schedule);
  const Result<agree::EpochLog::Standing> stands =
      agree::EpochLog::Propose(store, context_->prefix, next, outstanding.schedule);
  // The call that asks will find out as well.
  if (!learning_->Reached(stands.ok() ? Status() : stands.status(), now)) {
    if (turn) learner_->Lost(next);
    return false;
  }
  proposed_ = next;
  context_->known.Put(next, stands.value().text);
  if (stands.value().held || stands.value().schedule != outstanding.schedule) {
    // The ranks are ahead: the next epoch begins at the call they report.
    proposed_end_ = 0;
    if (turn) learner_->Lost(next);
    return false;
  }
  const uint64_t calls = outstanding.schedule.Calls();
  proposed_end_ = outstanding.start + calls;
  const bool settled = learner_ != nullptr && learner_->settled();
  longest_rest_ = settled ? std::max(longest_rest_, calls) : 0;
  if (!turn) return true;
  outstanding.since = now;
  if (outstanding.schedule.timed) {
    for (int rank = 1; rank < learning_->options().shape.ranks; ++rank) {
      if (Reports(rank, learning_->options().shape.ranks)) outstanding.missing.push_back(rank);
    }
  }
  outstanding_.emplace(next, std::move(outstanding));
  return true;
}

// Logs one line when a winner is found, or has changed.
void ContextExplorer::LogIfSettled() {
  if (learner_ == nullptr || !learner_->settled()) return;
  const Config best = learner_->best();
  if (said_settled_ && best == said_best_) return;
  said_settled_ = true;
  said_best_ = best;
  const Library library = learning_->options().host.library;
  std::string line =
      Format("%s up to %s: %s", std::string(CollectiveName(context_->collective)).c_str(),
             FormatBytes(BandLast(context_->band)).c_str(),
             best.IsDefault() ? "nothing beats the library's default"
                              : ConfigText(library, context_->collective, best).c_str());
  for (const learn::ArmSummary& arm : learner_->Summary()) {
    if (best.IsDefault() || arm.config != best || arm.ratio <= 0) continue;
    line += Format(", %.2f x as fast as the default (%.2f to %.2f, %llu samples)", 1 / arm.ratio,
                   1 / arm.high, 1 / arm.low, static_cast<unsigned long long>(arm.samples));
  }
  learning_->log().Info(line);
}

}  // namespace diapason::plugin
