#include "plugin/learning/context_explorer.h"

#include <algorithm>

#include "base/clock.h"
#include "base/text.h"

namespace diapason::plugin {
namespace {

// The first calls of a communicator connect, allocate and warm up; their times are not used.
constexpr uint64_t kWarmUpCalls = 64;
constexpr uint64_t kWarmUpEpoch = 16;
constexpr uint64_t kWaitCalls = 64;       // calls in an epoch while there is nothing to propose
constexpr double kResultsPatience = 3.0;  // seconds to wait for the other ranks' results
// seconds for which one context may hold the exploration token
constexpr double kTokenPatience = 30.0;
constexpr double kFullStore = 0.75;
// Calls in an epoch when the store is nearly full.
constexpr uint64_t kLongWait = uint64_t{1} << 20;
// Once a context is settled, epochs are written ahead so that an outage of the store does no harm:
// at most this many seconds of calls. A settled context that changes is reopened after them.
constexpr double kAheadSeconds = 120;
constexpr uint64_t kLongRest = 1024;  // calls: shorter epochs are not written ahead
constexpr uint64_t kFirstFrozen = 256;
constexpr uint64_t kLongestFrozen = 16384;
constexpr size_t kMostOutstanding = 16;

}  // namespace

ContextExplorer::ContextExplorer(const LearningHandover* learning, ContextHandover* context,
                                 Reporter* reporter, BackgroundStore* store)
    : learning_(learning),
      context_(context),
      reporter_(reporter),
      store_(store),
      rewards_(learning, context, reporter),
      candidates_(learning, context, store),
      token_(store->cells(), context->prefix),
      proposer_(learning, context, reporter, store) {}

void ContextExplorer::StartLearning() {
  learn::LearnOptions how = learning_->options.learn;
  how.unit = rewards_.unit();
  // GPU times come from all ranks; every other source is a clock of rank 0.
  how.lead_in = rewards_.source() == RewardSource::kGpu ? 0 : 1;
  reporter_->SkipChanges(how.lead_in > 0);
  how.seed = learning_->options.comm_id ^ static_cast<uint64_t>(context_->band) << 8 ^
             static_cast<uint64_t>(context_->collective);
  const Config incumbent = reporter_->newest().schedule.incumbent;
  const std::vector<learn::ArmConfig> candidates = candidates_.Initial(incumbent);
  outstanding_.clear();
  learner_ = learn::MakeLearner(how, incumbent, candidates);
  said_settled_ = false;
  std::string line = Format("learning {}: {} beside the default, by {}", context_->Name(),
                            Count(candidates.size(), "configuration"),
                            std::string(RewardSourceName(*rewards_.source())));
  if (how.unit > 1) {
    line += Format(" ({} calls an iteration)", how.unit);
  }
  learning_->log.Info(line);
}

void ContextExplorer::Poll(const Moment& moment, std::vector<Reporter::Finished> finished) {
  rewards_.Take();
  if (!offers_known_) offers_known_ = candidates_.GatherOffers(moment.now);
  if (offers_known_ && reporter_->newest().number >= 1 && moment.calls_of_all >= kWarmUpCalls &&
      rewards_.Choose()) {
    StartLearning();
  }
  // The reward file was not complete, and nothing else can tell times: nothing is tried any more.
  if (exploring() && !rewards_.source().has_value()) learner_.reset();
  TakeResults(moment.now, std::move(finished));
  if (learned_ && learner_ != nullptr) candidates_.AddFewerChannels(learner_.get());
  learned_ = false;
  Propose(moment);
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
    const bool over = reporter_->newest().number > epoch + 1;
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
  const size_t segments = outstanding->schedule.segments.size();
  return store_->Gather(
      &outstanding->missing, now,
      [&](int rank) { return Reporter::ResultsKey(context_->prefix, epoch, rank); },
      [&](const std::string& text) {
        const auto results = learn::ParseResults(text, segments);
        // Results that cannot be parsed count as "could not measure".
        outstanding->ranks.push_back(results.ok() ? results.value()
                                                  : std::vector<learn::SegmentResult>(segments));
      });
}

void ContextExplorer::Conclude(uint32_t epoch, const Outstanding& outstanding) {
  std::vector<learn::SegmentResult> results = learn::SlowestOf(outstanding.ranks);
  if (results.size() != outstanding.schedule.segments.size()) {
    if (learner_ != nullptr) learner_->Lost(epoch);
    return;
  }
  if (learning_->journal != nullptr) WriteRewards(epoch, outstanding, results);
  if (learner_ == nullptr) return;
  for (const learn::SegmentResult& result : results) {
    has_results_ = has_results_ || result.samples > 0;
  }
  if (outstanding.padded) results.erase(results.begin());
  learner_->Learn(epoch, results);
  learned_ = true;
}

void ContextExplorer::WriteRewards(uint32_t epoch, const Outstanding& outstanding,
                                   const std::vector<learn::SegmentResult>& results) const {
  journal::JournalRecord record;
  record.kind = journal::RecordKind::kReward;
  record.communicator = learning_->options.number;
  record.collective = static_cast<uint8_t>(context_->collective);
  record.bytes = BandLast(context_->band);
  record.epoch = epoch;
  record.index = outstanding.start;
  record.skew = static_cast<float>(learn::SkewOf(outstanding.ranks));
  record.iteration = rewards_.unit() > 1 || rewards_.covers_iterations();
  for (size_t i = 0; i < results.size(); ++i) {
    const Segment& segment = outstanding.schedule.segments[i];
    if (results[i].samples > 0 && segment.counts) {
      record.time_ns = WallTimeNs();
      record.algorithm = static_cast<int8_t>(segment.config.algorithm);
      record.protocol = static_cast<int8_t>(segment.config.protocol);
      record.channels = static_cast<int16_t>(segment.config.channels);
      record.seconds = results[i].seconds;
      record.samples = results[i].samples;
      learning_->journal->Add(record);
    }
    record.index += segment.calls;
  }
}

std::string ContextExplorer::WhyNothing() const {
  if (!offers_known_) return "not all ranks have said yet which pairs they can run";
  if (!rewards_.source().has_value()) return rewards_.WhyNone();
  return Format("no time has come from the reward source '{}' yet",
                std::string(RewardSourceName(*rewards_.source())));
}

Schedule ContextExplorer::Wait() const {
  Schedule schedule;
  schedule.incumbent =
      learner_ != nullptr ? learner_->best() : reporter_->newest().schedule.incumbent;
  schedule.segments = {{schedule.incumbent, learner_ != nullptr ? kWaitCalls : kWarmUpEpoch, true}};
  return schedule;
}

bool ContextExplorer::WantsMore(const Moment& moment) const {
  if (proposer_.IsBehind()) return true;
  const bool resting = moment.frozen || (decided() && longest_rest_ >= kLongRest);
  return resting && proposer_.EndsWithin(kAheadSeconds);
}

void ContextExplorer::Propose(const Moment& moment) {
  if (token_.held() && (rewards_.Idle() || moment.frozen)) (void)token_.Release();
  if (!proposer_.Begin(moment.now)) return;
  while (WantsMore(moment) && !store_->away(moment.now) && ProposeNext(moment)) {
  }
}

// Whether this context may explore now. If the reward covers whole iterations, only one context of
// the job may explore at a time.
bool ContextExplorer::MayTry(const Moment& moment) {
  if (learner_ == nullptr || moment.frozen || outstanding_.size() >= kMostOutstanding) {
    return false;
  }
  if (!rewards_.covers_iterations()) return true;
  if (token_.held() && (learner_->settled() || moment.now - token_since_ > kTokenPatience)) {
    (void)token_.Release();
    return learner_->settled();
  }
  if (token_.held() || learner_->settled()) return true;
  const Result<bool> taken = token_.TryTake();
  if (!taken.ok() || !taken.value()) return false;
  token_since_ = moment.now;
  return true;
}

Schedule ContextExplorer::Chosen(uint32_t epoch, bool turn, bool frozen) {
  if (turn) {
    Schedule schedule = learner_->Next(epoch);
    schedule.timed = rewards_.source() == RewardSource::kGpu && schedule.Explores();
    return schedule;
  }
  Schedule schedule = Wait();
  if (store_->cells()->Fullness() > kFullStore) {
    schedule.segments[0].calls = kLongWait;
  } else if (frozen) {
    frozen_calls_ = std::clamp(frozen_calls_ * 2, kFirstFrozen, kLongestFrozen);
    schedule.segments[0].calls = frozen_calls_;
  }
  return schedule;
}

// False: propose no further epoch now.
bool ContextExplorer::ProposeNext(const Moment& moment) {
  const uint32_t next = proposer_.next();
  const bool turn = store_->cells()->Fullness() <= kFullStore && MayTry(moment);
  if (!moment.frozen) frozen_calls_ = 0;
  Outstanding outstanding;
  outstanding.start = proposer_.next_start();
  outstanding.schedule = Chosen(next, turn, moment.frozen);
  const uint64_t padding = turn ? rewards_.CallsToBoundary(outstanding.start) : 0;
  if (padding > 0) {
    outstanding.padded = true;
    outstanding.schedule.segments.insert(outstanding.schedule.segments.begin(),
                                         Segment{outstanding.schedule.incumbent, padding, false});
  }
  const EpochProposer::Outcome outcome = proposer_.Propose(outstanding.schedule, moment.now);
  if (outcome != EpochProposer::Outcome::kFailed && learner_ != nullptr) {
    learner_->SetLead(proposer_.lead());
  }
  if (outcome != EpochProposer::Outcome::kStands) {
    if (turn) learner_->Lost(next);
    return false;
  }
  longest_rest_ = decided() ? std::max(longest_rest_, outstanding.schedule.Calls()) : 0;
  if (!turn) return true;
  outstanding.since = moment.now;
  if (outstanding.schedule.timed) {
    for (int rank = 1; rank < learning_->options.shape.ranks; ++rank) {
      if (Reports(rank, learning_->options.shape.ranks)) outstanding.missing.push_back(rank);
    }
  }
  outstanding_.emplace(next, std::move(outstanding));
  return true;
}

// Logs one line when a winner is found, or has changed.
void ContextExplorer::LogIfSettled() {
  if (!decided()) return;
  const Config best = learner_->best();
  if (said_settled_ && best == said_best_) return;
  said_settled_ = true;
  said_best_ = best;
  const Library library = learning_->options.host.library;
  std::string line = context_->Name() + ": " +
                     (best.IsDefault() ? "nothing beats the library's default"
                                       : ConfigText(library, context_->collective, best));
  for (const learn::ArmSummary& arm : learner_->Summary()) {
    if (best.IsDefault() || arm.config != best || arm.ratio <= 0) continue;
    line += Format(", {:.2f} x as fast as the default ({:.2f} to {:.2f}, {} samples)",
                   1 / arm.ratio, 1 / arm.high, 1 / arm.low, arm.samples);
  }
  learning_->log.Info(line);
}

}  // namespace diapason::plugin
