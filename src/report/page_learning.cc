#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "domain/schedule.h"
#include "journal/learning.h"
#include "report/page_parts.h"

namespace diapason::report {
namespace {

std::string CommunicatorText(const journal::JournalComm& communicator) {
  std::string text = communicator.name.empty() ? Format("communicator {}", communicator.number)
                                               : communicator.name;
  // A journal may contain any number.
  const auto number = [](int64_t value, const char* noun) {
    return Count(static_cast<size_t>(std::max<int64_t>(value, 0)), noun);
  };
  return text + ", " + number(communicator.shape.ranks, "rank") + " on " +
         number(communicator.shape.nodes, "node");
}

PageLearning LearningOf(const journal::JournalContext& context,
                        const journal::JournalComm& communicator, const std::string& journal,
                        ConfigBook* configs) {
  PageLearning learning;
  learning.label = std::string(CollectiveName(context.collective)) + " up to " +
                   FormatBytes(BandLast(context.band)) + ", " + CommunicatorText(communicator);
  learning.journal = journal;
  learning.iterations = context.iterations;
  learning.epochs = context.epochs.size();
  std::vector<std::vector<double>> ratios;
  for (const journal::LearningArm& arm : context.arms) {
    learning.arms.push_back(
        {configs->NumberOf(communicator.library, context.collective, arm.config),
         arm.StateText(),
         arm.blocks,
         arm.samples,
         arm.seconds,
         {},
         arm.skew});
    ratios.emplace_back();
  }
  for (const journal::LearningEpoch& epoch : context.epochs) {
    if (epoch.held > 0) learning.held.push_back(epoch.epoch);
    for (const journal::LearningEpoch::Block& block : epoch.blocks) {
      for (size_t arm = 0; arm < context.arms.size(); ++arm) {
        if (!(context.arms[arm].config == block.config)) continue;
        learning.blocks.push_back({epoch.epoch, arm, block.ratio, block.seconds, block.samples});
        if (block.ratio > 0) ratios[arm].push_back(block.ratio);
      }
    }
  }
  for (size_t arm = 0; arm < ratios.size(); ++arm) {
    if (ratios[arm].empty()) continue;
    learning.arms[arm].ratio = {ratios[arm].size(), Median(ratios[arm]),
                                MedianInterval95(ratios[arm])};
  }
  return learning;
}

PageJournal Describe(const PageInput::Journal& journal) {
  const journal::JournalContents& contents = journal.contents;
  PageJournal shown;
  shown.name = journal.name;
  shown.host = contents.host;
  shown.pid = contents.pid;
  std::vector<std::string> names;
  for (const journal::JournalComm& communicator : contents.communicators) {
    std::string name = CommunicatorText(communicator);
    if (communicator.rank >= 0) name += Format(", rank {}", communicator.rank);
    names.push_back(std::move(name));
    if (names.size() == 4) break;
  }
  shown.communicators = Join(names, "; ");
  if (contents.communicators.size() > names.size()) shown.communicators += "; ...";
  for (const journal::JournalRecord& record : contents.records) {
    shown.decisions += record.kind == journal::RecordKind::kDecision ? 1 : 0;
    shown.runs += record.kind == journal::RecordKind::kRan ? 1 : 0;
    shown.rewards += record.kind == journal::RecordKind::kReward ? 1 : 0;
  }
  shown.dropped = contents.dropped;
  shown.bad_lines = contents.bad_lines;
  shown.ended = contents.ended;
  return shown;
}

}  // namespace

void AddJournals(const std::vector<PageInput::Journal>& journals, ConfigBook* configs,
                 PageData* data) {
  journal::JournalComparison comparison;
  // The ranks of a communicator record the same rewards: the most complete record is shown.
  std::map<std::tuple<uint64_t, int, int>, size_t> known;
  for (const PageInput::Journal& journal : journals) {
    data->journals.push_back(Describe(journal));
    comparison.Add(journal.name, journal.contents);
    for (const journal::JournalContext& context : journal::LearningOf(journal.contents)) {
      const journal::JournalComm* const communicator = journal.contents.Find(context.communicator);
      if (communicator == nullptr) continue;
      PageLearning learning = LearningOf(context, *communicator, journal.name, configs);
      if (learning.blocks.empty()) continue;
      const auto [found, added] =
          known.try_emplace({communicator->id, static_cast<int>(context.collective), context.band},
                            data->learning.size());
      if (added || communicator->id == 0) {
        data->learning.push_back(std::move(learning));
      } else if (data->learning[found->second].blocks.size() < learning.blocks.size()) {
        data->learning[found->second] = std::move(learning);
      }
    }
  }
  if (journals.size() > 1) data->agreement = comparison.Finish();
}

}  // namespace diapason::report
