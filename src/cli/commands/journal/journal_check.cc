#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands/journal/journal.h"
#include "cli/framework/command.h"
#include "cli/framework/json_text.h"
#include "dataset/summary.h"
#include "dataset/words.h"
#include "journal/compare.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using dataset::Printable;
using journal::JournalComparison;
using nlohmann::ordered_json;

constexpr size_t kShown = 10;
constexpr size_t kLongestLine = 1000;

std::string CollectiveText(Collective collective) {
  return std::string(CollectiveName(collective));
}

void PrintSpreads(const JournalComparison::Report& report) {
  if (report.spreads.empty()) return;
  using Align = report::Table::Align;
  report::Table table(
      {"communicator", "collective", "size", "runs", "slowest rank", "apart", "starts apart"});
  table.SetAlign({Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight,
                  Align::kRight, Align::kRight});
  for (const JournalComparison::Spread& spread : report.spreads) {
    table.Add({Printable(spread.communicator), CollectiveText(spread.collective),
               FormatBytes(spread.bytes), Format("{}", spread.runs),
               dataset::TimeText(spread.seconds), dataset::TimeText(spread.spread),
               spread.starts < 0 ? "-" : dataset::TimeText(spread.starts)});
  }
  PrintOut(
      "\nGPU times, medians over the runs: of the slowest rank, and the difference between the "
      "ranks.\nStarts are from the GPUs' own clocks, which can be compared on one host only.\n{}",
      table.Text());
}

void Print(const JournalComparison::Report& report) {
  PrintOut("{}\n", report.Verdict());
  if (!report.problems.empty() || !report.notes.empty()) PrintOut("\n");
  for (const std::string& problem : report.problems) {
    PrintOut("error: {}\n", Printable(problem, kLongestLine));
  }
  for (const JournalComparison::Difference& difference : report.first) {
    PrintOut("  {}\n", Printable(difference.Text(), kLongestLine));
  }
  const uint64_t different = report.different_calls + report.different_runs;
  if (different > report.first.size()) {
    PrintOut("  and {} more\n", different - report.first.size());
  }
  for (const std::string& note : report.notes) {
    PrintOut("note: {}\n", Printable(note, kLongestLine));
  }
  PrintSpreads(report);
}

ordered_json DifferenceJson(const JournalComparison::Difference& difference) {
  ordered_json sides = ordered_json::array();
  for (const JournalComparison::Side& side : difference.sides) {
    sides.push_back({{"ranks", side.labels},
                     {"algorithm", AlgorithmName(difference.library, difference.collective,
                                                 side.config.algorithm)},
                     {"protocol", ProtocolName(difference.library, side.config.protocol)},
                     {"channels", side.config.channels},
                     {"call", side.call}});
  }
  return {{"communicator", difference.communicator},
          {"collective", CollectiveName(difference.collective)},
          {"bytes", difference.bytes},
          {"what", difference.ran ? "ran" : "asked"},
          {"which", difference.which},
          {"time_ns", difference.time_ns},
          {"sides", std::move(sides)}};
}

ordered_json ReportJson(const JournalComparison::Report& report) {
  ordered_json differences = ordered_json::array();
  for (const JournalComparison::Difference& difference : report.first) {
    differences.push_back(DifferenceJson(difference));
  }
  ordered_json spreads = ordered_json::array();
  for (const JournalComparison::Spread& spread : report.spreads) {
    spreads.push_back({{"communicator", spread.communicator},
                       {"collective", CollectiveName(spread.collective)},
                       {"bytes", spread.bytes},
                       {"runs", spread.runs},
                       {"us", spread.seconds * 1e6},
                       {"apart_us", spread.spread * 1e6},
                       {"starts_apart_us",
                        spread.starts < 0 ? ordered_json() : ordered_json(spread.starts * 1e6)}});
  }
  return {{"agree", report.agree()},
          {"verdict", report.Verdict()},
          {"journals", report.journals},
          {"ranks", report.ranks},
          {"communicators", report.communicators},
          {"compared_communicators", report.compared},
          {"calls", report.calls},
          {"runs", report.runs},
          {"different_calls", report.different_calls},
          {"different_runs", report.different_runs},
          {"calls_on_some_ranks", report.lonely},
          {"calls_cut_off", report.cut_off},
          {"only_asked", report.only_asked},
          {"unavailable", report.unavailable},
          {"ran_other_pair", report.other_pair},
          {"ran_other_channels", report.other_channels},
          {"bypassed", report.bypassed},
          {"dropped", report.dropped},
          {"bad_lines", report.bad_lines},
          {"problems", report.problems},
          {"notes", report.notes},
          {"differences", std::move(differences)},
          {"spreads", std::move(spreads)}};
}

}  // namespace

Result<int> RunJournalCheck(const JournalCheck& asked) {
  JournalComparison comparison;
  for (const std::string& file : asked.files) {
    // Invalid lines and dropped records are part of the report.
    ASSIGN_OR_RETURN(const journal::JournalContents read, journal::ReadJournal(file));
    comparison.Add(file, read);
  }
  const JournalComparison::Report report = comparison.Finish(kShown);
  if (asked.json) {
    PrintOut("{}\n", JsonText(ReportJson(report)));
  } else {
    Print(report);
  }
  return report.agree() ? kExitFine : kExitFailed;
}

}  // namespace diapason::cli
