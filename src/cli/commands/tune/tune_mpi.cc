#include "cli/commands/tune/tune_mpi.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "base/environment.h"
#include "base/text.h"
#include "cli/framework/command.h"
#include "cli/framework/interrupt.h"
#include "cli/framework/progress_line.h"
#include "dataset/summary.h"
#include "dataset/words.h"
#include "domain/fingerprint.h"
#include "mpi_tune/leave.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using mpi_tune::MpiTuneResult;
using mpi_tune::TunedContext;
using mpi_tune::Verdict;

constexpr size_t kLongestLine = 600;
constexpr size_t kMostShown = 6;  // configurations of a call; result.json has all

std::string ContextTable(const MpiTuneResult& result) {
  using Align = report::Table::Align;
  report::Table table(
      {"calls", "share", "configuration", "alone", "call in the program", "gain there", ""});
  table.SetAlign({Align::kLeft, Align::kRight, Align::kLeft, Align::kRight, Align::kRight,
                  Align::kRight, Align::kLeft});
  table.SetImportance({9, 3, 8, 2, 4, 7, 6});
  for (const TunedContext& one : result.contexts) {
    const size_t shown = std::min(one.tried.size(), kMostShown);
    for (size_t i = 0; i < shown; ++i) {
      const mpi_tune::InProgram& tried = one.tried[i];
      const bool first = i == 0;
      std::string alone = "-";
      for (const auto& ranked : one.alone.ranked) {
        if (ranked.config == tried.config) alone = Format("{:.2f} x", ranked.gain);
      }
      table.Add({first ? one.context.Text() : "",
                 first ? Format("{:.0f} %", 100 * one.context.share) : "",
                 ConfigText(Library::kOpenMpi, one.context.collective, tried.config), alone,
                 dataset::TimeText(tried.seconds),
                 tried.config.IsDefault() ? "-" : Format("{:.2f} x", 1 / tried.ratio),
                 tried.config == one.chosen && !tried.config.IsDefault() ? "chosen" : ""});
      if (!tried.config.IsDefault()) table.SetTone(5, report::ToneOfGain(1 / tried.ratio));
    }
    if (one.tried.size() > shown) {
      table.Add({"", "", Format("and {} more", one.tried.size() - shown), "", "", "", ""});
    }
    if (one.tried.empty()) {
      table.Add({one.context.Text(), Format("{:.0f} %", 100 * one.context.share),
                 "nothing faster was found", "-", "-", "-", ""});
    }
  }
  return table.Text();
}

}  // namespace

std::string MpiTuneText(const MpiTuneResult& result) {
  std::string text = result.Headline() + "\n" + result.profile.ShareText() + "\n" +
                     result.profile.RulesText() + "\n";
  if (const std::string metric = result.metric.Text(); !metric.empty()) text += metric + "\n";
  if (!result.contexts.empty()) text += "\n" + ContextTable(result);
  for (const std::string& note : result.notes) {
    text += "note: " + dataset::Printable(note, kLongestLine) + "\n";
  }
  text += Format("\nfolder   {}\n", dataset::Printable(result.folder, kLongestLine));
  if (!result.rules.empty()) text += "to use it:\n" + mpi_tune::UseText(result);
  return text;
}

Result<int> RunTuneMpi(const TuneJobOptions& options) {
  CatchInterrupts();
  ProgressLine line("tune", options.quiet);
  mpi_tune::Events events;
  events.say = [&](const std::string& text) {
    if (options.quiet) return;
    WriteError("diapason: " + dataset::Printable(text, kLongestLine) + "\n");
  };
  events.progress = [&](double share, const std::string& what) {
    if (line.Due()) line.Show(share, what);
  };
  events.interrupted = Interrupted;
  Result<MpiTuneResult> tuned = mpi_tune::TuneMpi(options.request, ProcessEnvironment(), events);
  line.Clear();
  RETURN_IF_ERROR(tuned);
  MpiTuneResult result = std::move(tuned).value();
  mpi_tune::LeaveOptions leave;
  leave.folder = options.request.output;
  leave.fingerprint = MachineFingerprint();
  leave.now = static_cast<double>(std::time(nullptr));
  RETURN_IF_ERROR(mpi_tune::Leave(leave, &result));
  PrintOut("{}", options.json ? mpi_tune::ResultJson(result) : MpiTuneText(result));
  if (result.interrupted) return kExitInterrupted;
  return result.verdict == Verdict::kFaster || result.verdict == Verdict::kNothingToGain
             ? kExitFine
             : kExitFailed;
}

}  // namespace diapason::cli
