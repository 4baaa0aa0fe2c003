#include "base/text.h"
#include "base/units.h"
#include "cli/commands/journal/journal.h"
#include "dataset/summary.h"
#include "domain/schedule.h"
#include "journal/learning.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using Align = report::Table::Align;

// A job that has settled keeps counting epochs: the last ones are of interest.
constexpr size_t kShownEpochs = 12;

std::string Times(double seconds) { return seconds > 0 ? dataset::TimeText(seconds) : "-"; }

std::string Factor(double value) { return value > 0 ? Format("{:.2f} x", value) : "-"; }

std::string ArmsText(const journal::JournalContext& context, Library library) {
  report::Table table({"configuration", "blocks", "samples", "median", "to default", "skew", ""});
  table.SetAlign(
      {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  for (const journal::LearningArm& arm : context.arms) {
    table.Add({ConfigText(library, context.collective, arm.config), Format("{}", arm.blocks),
               Format("{}", arm.samples), Times(arm.seconds), Factor(arm.ratio), Factor(arm.skew),
               arm.StateText()});
  }
  return table.Text();
}

// Epochs in which a time was measured, or in which the ranks did not agree.
std::string EpochsText(const journal::JournalContext& context, Library library, bool all) {
  std::vector<const journal::LearningEpoch*> epochs;
  for (const journal::LearningEpoch& epoch : context.epochs) {
    if (!epoch.blocks.empty() || epoch.held > 0) epochs.push_back(&epoch);
  }
  if (epochs.empty()) return "no block of calls was measured\n";
  const size_t skipped = all || epochs.size() <= kShownEpochs ? 0 : epochs.size() - kShownEpochs;
  report::Table table({"epoch", "from call", "tried", "time", "to default", "samples", "skew"});
  table.SetAlign({Align::kRight, Align::kRight, Align::kLeft, Align::kRight, Align::kRight,
                  Align::kRight, Align::kRight});
  for (size_t i = skipped; i < epochs.size(); ++i) {
    const std::string number = Format("{}", epochs[i]->epoch);
    if (epochs[i]->held > 0) {
      table.Add({number, "", "held: nothing was agreed in time", "", "",
                 Format("{}", epochs[i]->held), ""});
    }
    for (const journal::LearningEpoch::Block& block : epochs[i]->blocks) {
      table.Add({number, Format("{}", block.first),
                 ConfigText(library, context.collective, block.config), Times(block.seconds),
                 Factor(block.ratio), Format("{}", block.samples), Factor(block.skew)});
    }
  }
  std::string text = table.Text();
  if (skipped > 0) text += Format("and {} earlier epochs; --calls shows them\n", skipped);
  return text;
}

}  // namespace

std::string LearningText(const journal::JournalContents& contents, bool all) {
  std::string text;
  for (const journal::JournalContext& context : journal::LearningOf(contents)) {
    const Library library = contents.Find(context.communicator)->library;
    if (!text.empty()) text += "\n";
    text += Format("communicator {}, {} up to {}: {}, times of {}\n", context.communicator,
                   std::string(CollectiveName(context.collective)),
                   FormatBytes(BandLast(context.band)), Count(context.epochs.size(), "epoch"),
                   context.iterations ? "whole iterations" : "single calls");
    text += EpochsText(context, library, all) + "\n" + ArmsText(context, library);
  }
  return text.empty() ? "nothing was learned in this process\n" : text;
}

}  // namespace diapason::cli
