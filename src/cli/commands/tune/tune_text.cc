// The text output of `tune`.
#include <algorithm>
#include <cmath>

#include "base/interval_text.h"
#include "base/own_files.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/tune/tune.h"
#include "cli/framework/progress_line.h"
#include "dataset/summary.h"
#include "domain/collectives.h"
#include "domain/decision.h"
#include "policy/origin.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using measure::TimingFigure;
using tune::CallOutcome;
using tune::TunedCall;
using tune::TuneOutcome;

std::string Choice(const TuneOutcome& outcome, const TunedCall& line, const Config& config) {
  return ConfigText(outcome.subject.library, NamesOf(line.trial.operation), config);
}

std::string TimeCell(const TimingFigure& figure) {
  if (figure.rounds.empty()) return "-";
  return dataset::TimeFigureText(figure.median, figure.interval, figure.rounds.size());
}

std::string GainText(const measure::PolicyCheck& check) {
  return Format("{:.2f} x ", check.gain) + IntervalText(Format("{:.2f}", check.interval.low),
                                                        Format("{:.2f}", check.interval.high),
                                                        check.gains.size());
}

// The last column: the configuration that runs now, or that nothing changed.
std::string What(const TuneOutcome& outcome, const TunedCall& line) {
  switch (line.ending) {
    case CallOutcome::kTuned:
      return Choice(outcome, line, line.config);
    case CallOutcome::kNothingBetter:
      return "library default";
    case CallOutcome::kNotConfirmed:
      return "library default (" + Choice(outcome, line, *line.planned) +
             (line.no_time ? " not verified)" : " not confirmed)");
    case CallOutcome::kFailed:
      return "library default (" + Choice(outcome, line, *line.planned) + " failed)";
    case CallOutcome::kNoDefault:
      break;
  }
  return line.no_time ? "library default (not measured)" : "could not be measured";
}

// Sizes left to the library for the same reason: "4MiB", "1KiB to 8KiB".
std::string LeftAlone(const TuneOutcome& outcome) {
  struct Group {
    Operation operation;
    std::string why;
    uint64_t first;
    uint64_t last;
    size_t sizes;
  };
  std::vector<Group> groups;
  bool adjacent = false;
  for (const TunedCall& line : outcome.lines) {
    if (line.ending == CallOutcome::kTuned) {
      adjacent = false;
      continue;
    }
    const std::string why = line.why.empty() ? tune::CallOutcomeName(line.ending) : line.why;
    if (adjacent && groups.back().operation == line.trial.operation && groups.back().why == why) {
      groups.back().last = line.trial.bytes;
      ++groups.back().sizes;
    } else {
      groups.push_back({line.trial.operation, why, line.trial.bytes, line.trial.bytes, 1});
    }
    adjacent = true;
  }
  if (groups.empty()) return "";
  std::string text = "\nleft to the library\n";
  for (const Group& group : groups) {
    text += "  " + measure::CollectiveText(group.operation) + " " + FormatBytes(group.first) +
            (group.sizes > 1 ? " to " + FormatBytes(group.last) : "") + ": " + group.why + "\n";
  }
  return text;
}

std::string Rounds(const TuneOutcome& outcome) {
  size_t least = SIZE_MAX;
  size_t most = 0;
  for (const TunedCall& line : outcome.lines) {
    if (!line.check.has_value()) continue;
    least = std::min(least, line.check->gains.size());
    most = std::max(most, line.check->gains.size());
  }
  if (most == 0) return "";
  return least == most ? Count(most, "round") : Format("{} to {} rounds", least, most);
}

// What the policy does between the sizes of the table.
std::string BetweenText(const TuneOutcome& outcome) {
  if (outcome.between.empty()) return "";
  size_t changed = 0;
  size_t verified = 0;
  for (const TunedCall& line : outcome.between) {
    changed += line.config.IsDefault() ? 0 : 1;
    verified += line.ending == CallOutcome::kTuned ? 1 : 0;
  }
  std::string text =
      Format("between    {} between these measured: the policy changes {} ({} verified)",
             Count(outcome.between.size(), "size"), changed, verified);
  if (changed < outcome.between.size()) {
    text += Format(", {} left to the library", outcome.between.size() - changed);
  }
  return text + "\n";
}

// Ranges that no size of the table is in, and that are left to the library between two that are
// not.
std::string HolesText(const TuneOutcome& outcome) {
  std::string text;
  for (size_t i = 0; i < outcome.coverage.size(); ++i) {
    const tune::CoveredRange& one = outcome.coverage[i];
    if (!one.range.config.IsDefault()) continue;
    const bool asked =
        std::any_of(outcome.lines.begin(), outcome.lines.end(), [&](const TunedCall& line) {
          return line.trial.operation == one.operation && line.trial.bytes >= one.range.first &&
                 line.trial.bytes <= one.range.last;
        });
    if (asked) continue;
    text +=
        Format("  {} {} to {} bytes: {}\n", measure::CollectiveText(one.operation), one.range.first,
               one.range.last, one.range.why.empty() ? "not measured" : one.range.why);
  }
  return text.empty() ? "" : "\nleft to the library between the sizes\n" + text;
}

}  // namespace

std::string TuneTable(const TuneOutcome& outcome, const tune::TuneGoal& goal) {
  using Align = report::Table::Align;
  const bool weighted = !goal.mix.entries.empty() && !goal.step.has_value();
  // For an iteration the times are those of a whole step.
  const bool step = goal.step.has_value();
  std::vector<std::string> titles = {"collective",
                                     "size",
                                     step ? "step by default [95 %]" : "library default [95 %]",
                                     step ? "step tuned [95 %]" : "tuned [95 %]",
                                     "gain [95 %]",
                                     "configuration"};
  std::vector<Align> aligns = {Align::kLeft,  Align::kRight, Align::kRight,
                               Align::kRight, Align::kRight, Align::kLeft};
  if (weighted) {
    titles.insert(titles.begin() + 2, "calls");
    aligns.insert(aligns.begin() + 2, Align::kRight);
  }
  std::vector<int> importance = {6, 9, 1, 3, 8, 7};
  if (weighted) importance.insert(importance.begin() + 2, 2);
  const size_t gain = titles.size() - 2;
  report::Table table(titles);
  table.SetAlign(aligns);
  table.SetImportance(importance);
  for (const TunedCall& line : outcome.lines) {
    const bool tuned = line.ending == CallOutcome::kTuned;
    std::vector<std::string> cells = {measure::CollectiveText(line.trial.operation),
                                      FormatBytes(line.trial.bytes),
                                      TimeCell(line.library),
                                      tuned ? TimeCell(line.check->policy) : "-",
                                      tuned ? GainText(*line.check) : "-",
                                      What(outcome, line)};
    if (weighted) cells.insert(cells.begin() + 2, Format("{:.0f}", line.weight));
    table.Add(std::move(cells));
    if (tuned) table.SetTone(gain, report::ToneOfGain(line.check->gain));
    if (line.ending == CallOutcome::kFailed) table.SetTone(gain + 1, report::Table::Tone::kBad);
  }
  return table.Text();
}

std::string TuneSummary(const TuneOutcome& outcome, const tune::TuneGoal& goal, bool relaunched) {
  std::string text = "\n";
  const size_t all = outcome.lines.size();
  if (outcome.subject.simulated) text += "all figures are simulated; nothing was measured\n";
  text += outcome.Headline(goal.step.has_value()) + "\n";
  if (goal.step.has_value()) {
    text += "iteration  " + measure::WorkloadText(*goal.step) + "\n";
    if (outcome.whole.has_value()) {
      text += "           library default " + TimeCell(outcome.whole->library) + ", tuned " +
              TimeCell(outcome.whole->policy) + ", " + GainText(*outcome.whole) + "\n";
    }
  } else if (!goal.mix.entries.empty()) {
    const TuneOutcome::Total total = outcome.Weighted();
    if (total.after > 0) {
      text += Format(
          "the recorded calls take {} with the library's choices and {} with the tuned ones: "
          "{:.2f} "
          "x\n",
          dataset::TimeText(total.before), dataset::TimeText(total.after),
          total.before / total.after);
    }
    text += Format("note       {}\n", policy::kCallsAlone);
  }
  const std::string rounds = Rounds(outcome);
  text += "measured   " + Count(outcome.samples, "sample") + " of " +
          (goal.step.has_value() ? Count(all, "kind") + " of buckets" : Count(all, "call"));
  if (!rounds.empty()) {
    text += ", then verified on " +
            std::string(relaunched ? "newly started ranks" : "the same ranks") + ": " + rounds +
            " each, alternating default and tuned (a gain is the median over the rounds)";
  }
  text += Format("; {} in total\n", DurationText(outcome.seconds));
  text += BetweenText(outcome);
  if (outcome.channel_cap > 0) {
    text += Format("channels   {} or more are the same here, and were measured as one\n",
                   outcome.channel_cap);
  }
  text += LeftAlone(outcome);
  text += HolesText(outcome);
  if (!outcome.failures.empty()) {
    text += "\nfailed, and never chosen\n";
    for (const std::string& failure : outcome.failures) text += "  " + failure + "\n";
  }
  return text;
}

std::string TuneUse(const TuneOutcome& outcome, const tune::TuneFiles& files) {
  std::string text = "\nwritten to " + files.folder + "\n";
  text += Format("  policy.conf      {}\n", outcome.policy.rules.empty()
                                                ? "no rows: the library makes all choices"
                                                : Count(outcome.policy.rules.size(), "row"));
  if (!files.older.empty()) text += "  policy.old.conf  what policy.conf was before\n";
  if (!files.rules.empty()) text += "  rules.conf       the same policy as rules for Open MPI\n";
  text += "  measurements.db  all samples; `diapason data show` shows them\n";
  if (!files.report.empty()) text += "  report.html      report for a web browser\n";
  if (outcome.policy.rules.empty()) return text;
  const Library library = outcome.subject.library;
  if (outcome.subject.simulated) {
    return text + "\nThis policy is for the simulated cluster and does not apply to a real one.\n";
  }
  switch (library) {
    case Library::kNccl:
    case Library::kRccl:
      text += "\nto use it in a job:\n  diapason run --policy " + ShellWord(files.policy) +
              " -- COMMAND\nby hand, on every host:\n  export NCCL_TUNER_PLUGIN=" +
              ShellWord(FindBesideUs("libnccl-tuner-diapason.so")) +
              "\n  export DIAPASON_POLICY=" + ShellWord(files.policy) + "\n";
      break;
    case Library::kOpenMpi:
      text +=
          "\nto use it in a job:\n  mpirun --mca coll_tuned_use_dynamic_rules 1 --mca "
          "coll_tuned_dynamic_rules_filename " +
          ShellWord(files.rules) + " ...\n";
      break;
    case Library::kGloo:
      text +=
          "\nGloo has no plugin interface, so PyTorch's Gloo cannot use the policy. A C++ program "
          "uses it through comm.h:\n  #include <diapason/comm.h>\n  diapason::GroupOptions "
          "options;\n  options.backend = \"gloo\";\n  options.policy = \"" +
          files.policy +
          "\";\n"
          "  auto group = diapason::Group::Create(options);\n";
      break;
  }
  return text;
}

}  // namespace diapason::cli
