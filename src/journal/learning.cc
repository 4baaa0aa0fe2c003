#include "journal/learning.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/stats.h"
#include "domain/schedule.h"
#include "journal/joined.h"

namespace diapason::journal {
namespace {

using LearningKey = std::tuple<uint32_t, uint8_t, int>;
using ConfigKey = std::tuple<int, int, int>;

ConfigKey KeyOf(const Config& config) {
  return {config.algorithm, config.protocol, config.channels};
}

struct GatheredLearning {
  std::map<uint32_t, LearningEpoch> epochs;
  uint64_t last_index = 0;
  Config in_use;  // of the last decision that did not explore
  bool decided = false;
  bool iterations = false;
  std::map<uint32_t, std::vector<Config>> tried;  // by epoch
};

void Gather(const JournalRecord& record, GatheredLearning* gathered) {
  LearningEpoch& epoch = gathered->epochs[record.epoch];
  epoch.epoch = record.epoch;
  if (record.kind == RecordKind::kReward) {
    gathered->iterations |= record.iteration;
    epoch.blocks.push_back({ConfigOf(record), record.index, record.seconds, 0, record.samples,
                            static_cast<double>(record.skew)});
    return;
  }
  ++epoch.decisions;
  epoch.held += record.reason == Reason::kHeld ? 1 : 0;
  if (record.reason == Reason::kTrying || record.reason == Reason::kWarmUp) {
    gathered->tried[record.epoch].push_back(ConfigOf(record));
  } else if (!gathered->decided || record.index >= gathered->last_index) {
    gathered->in_use = AskedOf(record);
    gathered->last_index = record.index;
    gathered->decided = true;
  }
}

// Relative to the default in the same epoch only, under the same conditions.
void AddRatios(LearningEpoch* epoch) {
  std::stable_sort(epoch->blocks.begin(), epoch->blocks.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<double> standard;
  for (const LearningEpoch::Block& block : epoch->blocks) {
    if (block.config.IsDefault() && block.seconds > 0) standard.push_back(block.seconds);
  }
  if (standard.empty()) return;
  const double reference = Median(standard);
  for (LearningEpoch::Block& block : epoch->blocks) block.ratio = block.seconds / reference;
}

std::vector<LearningArm> ArmsOf(const GatheredLearning& gathered) {
  struct Sums {
    LearningArm arm;
    std::vector<double> seconds;
    std::vector<double> ratios;
    std::vector<double> skews;
  };
  std::map<ConfigKey, Sums> sums;
  const auto of = [&](const Config& config) -> Sums& {
    Sums& sum = sums[KeyOf(config)];
    sum.arm.config = config;
    return sum;
  };
  for (const auto& [number, epoch] : gathered.epochs) {
    for (const LearningEpoch::Block& block : epoch.blocks) {
      Sums& sum = of(block.config);
      ++sum.arm.blocks;
      sum.arm.samples += block.samples;
      if (block.seconds > 0) sum.seconds.push_back(block.seconds);
      if (block.ratio > 0) sum.ratios.push_back(block.ratio);
      if (block.skew > 0) sum.skews.push_back(block.skew);
    }
  }
  if (!gathered.tried.empty() &&
      gathered.tried.rbegin()->first == gathered.epochs.rbegin()->first) {
    for (const Config& config : gathered.tried.rbegin()->second) {
      of(config).arm.state = LearningArm::State::kTried;
    }
  }
  if (gathered.decided) of(gathered.in_use).arm.state = LearningArm::State::kInUse;
  std::vector<LearningArm> arms;
  for (auto& [key, sum] : sums) {
    if (!sum.seconds.empty()) sum.arm.seconds = Median(sum.seconds);
    if (!sum.ratios.empty()) sum.arm.ratio = Median(sum.ratios);
    if (!sum.skews.empty()) sum.arm.skew = Median(sum.skews);
    arms.push_back(sum.arm);
  }
  std::stable_sort(arms.begin(), arms.end(), [](const LearningArm& a, const LearningArm& b) {
    const auto place = [](const LearningArm& arm) {
      return std::tuple(!arm.config.IsDefault(), arm.ratio <= 0, arm.ratio);
    };
    return place(a) < place(b);
  });
  return arms;
}

}  // namespace

std::vector<JournalContext> LearningOf(const JournalContents& contents) {
  std::map<LearningKey, GatheredLearning> contexts;
  for (const JournalRecord& record : contents.records) {
    const bool counted = record.kind == RecordKind::kReward ||
                         (record.kind == RecordKind::kDecision && record.learning);
    if (!counted) continue;
    Gather(record, &contexts[{record.communicator, record.collective, SizeBand(record.bytes)}]);
  }
  std::vector<JournalContext> list;
  for (auto& [key, gathered] : contexts) {
    JournalContext context;
    context.communicator = std::get<0>(key);
    context.collective = static_cast<Collective>(std::get<1>(key));
    context.band = std::get<2>(key);
    context.iterations = gathered.iterations;
    for (auto& [number, epoch] : gathered.epochs) AddRatios(&epoch);
    context.arms = ArmsOf(gathered);
    for (auto& [number, epoch] : gathered.epochs) context.epochs.push_back(std::move(epoch));
    list.push_back(std::move(context));
  }
  return list;
}

}  // namespace diapason::journal
