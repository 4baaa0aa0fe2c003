#include "cli/commands/tune/job_text.h"

#include <algorithm>

#include "base/printable.h"
#include "base/text.h"
#include "base/units.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using job_tune::JobTuneResult;
using job_tune::LaunchSummary;
using job_tune::TriedConfig;
using job_tune::TunedContext;
using job_tune::Verdict;
using job_tune::VerifyingLaunch;
using job_tune::VerifyingPair;
using report::Table;

constexpr size_t kMostContexts = 20;
constexpr size_t kMostReasons = 8;

// Where it went: "compute 2.6 ms -> 2.5 ms, ...".
std::string PartsText(const JobTuneResult& result) {
  const auto& before = result.by_default;
  const auto& after = result.tuned;
  if (before.times.total <= 0 || after.times.total <= 0) return "";
  const auto part = [](const char* name, double was, double is) {
    return Format("{} {} -> {}", name, job_profile::Milliseconds(std::max(0.0, was)),
                  job_profile::Milliseconds(std::max(0.0, is)));
  };
  return "iteration  " + part("exposed communication", before.times.exposed, after.times.exposed) +
         ", " + part("hidden", before.times.Hidden(), after.times.Hidden()) + ", " +
         part("the rest", before.iteration - before.times.total,
              after.iteration - after.times.total) +
         (result.gain.by_pairs
              ? Format(" (launches {} and {}; exposed is an estimate)\n",
                       result.gain.default_launch, result.gain.launch)
              : Format(" (launch {}; exposed is an estimate)\n", result.gain.launch));
}

std::string GainCell(const TriedConfig& tried) {
  return tried.gain > 0 ? Format("{:.2f} x [{:.2f}, {:.2f}]", tried.gain, tried.low, tried.high)
                        : "not measured";
}

std::string ContextsText(const JobTuneResult& result) {
  if (result.contexts.empty()) return "";
  using Align = Table::Align;
  const bool kept = result.verdict == Verdict::kFaster;
  Table table({"calls", "per iteration", "time", "tried", kept ? "policy" : "best of the search",
               "gain in the search"});
  table.SetAlign({Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  table.SetImportance({9, 3, 4, 1, 7, 8});
  size_t shown = 0;
  for (const TunedContext& one : result.contexts) {
    if (++shown > kMostContexts) break;
    const auto chosen =
        std::find_if(one.tried.begin(), one.tried.end(),
                     [&](const TriedConfig& tried) { return tried.config == one.chosen; });
    const bool left = one.chosen.IsDefault();
    table.Add({one.context.Text(), Format("{:.4g}", one.calls_per_iteration),
               one.seconds > 0 ? job_profile::Milliseconds(one.seconds) : "not known",
               Format("{}", one.tried.size()),
               left ? "left to the library"
                    : ConfigText(one.context.library, one.context.collective, one.chosen),
               left || chosen == one.tried.end() ? "" : GainCell(*chosen)});
    if (!left && chosen != one.tried.end()) table.SetTone(5, report::ToneOfGain(chosen->gain));
  }
  std::string text = "\n" + table.Text();
  if (result.contexts.size() > kMostContexts) {
    text += Format("and {} more\n", result.contexts.size() - kMostContexts);
  }
  return text;
}

std::string PairsText(const JobTuneResult& result) {
  std::vector<std::string> gains;
  std::string undecided;
  for (const VerifyingPair& one : result.pairs) {
    if (one.Decided()) {
      gains.push_back(Format("{:.3f} x", one.default_seconds / one.policy_seconds));
    } else {
      undecided += Format("           launches {} and {} do not count: {}\n", one.default_launch,
                          one.policy_launch, Printable(one.trouble));
    }
  }
  const std::string text = gains.empty() ? "none can tell" : Join(gains, ", ");
  return "pairs      " + text + " (compared between launches)\n" + undecided;
}

std::string VerifiedText(const JobTuneResult& result) {
  if (!result.pairs.empty()) return PairsText(result);
  if (result.verified.empty()) return "";
  std::vector<std::string> gains;
  std::string undecided;
  for (const VerifyingLaunch& one : result.verified) {
    if (one.compared.Decided()) {
      gains.push_back(Format("{:.3f} x [{:.3f}, {:.3f}]", one.compared.gain, one.compared.low,
                             one.compared.high));
    } else {
      undecided += Format("           launch {} does not count: {}\n", one.launch,
                          Printable(one.compared.trouble));
    }
  }
  std::string text;
  if (!gains.empty()) text = "launches   " + Join(gains, ", ") + "\n";
  if (result.gain.launches == 1) {
    text += Format("           one launch: that launches differ by {:.0f} % is assumed\n",
                   100 * result.gain.spread);
  }
  if (text.empty() && !undecided.empty()) text = "launches   none can tell\n";
  return text + undecided;
}

std::string UntriedText(const JobTuneResult& result) {
  const std::vector<std::string> reasons = result.Untried();
  std::string text;
  for (size_t i = 0; i < reasons.size() && i < kMostReasons; ++i) {
    text += (i == 0 ? "not tried  " : "           ") + Printable(reasons[i]) + "\n";
  }
  if (reasons.size() > kMostReasons) {
    text += Format("           and {} more\n", reasons.size() - kMostReasons);
  }
  return text;
}

std::string FilesText(const JobTuneResult& result) {
  const job_tune::LeftFiles& files = result.files;
  if (files.folder.empty()) return "";
  std::string text = "\nwritten to " + Printable(files.folder) + "\n";
  if (!files.policy.empty()) {
    text += Format("  policy.conf      {}\n", Count(result.policy.rules.size(), "row"));
  }
  if (!files.previous.empty()) text += "  policy.old.conf  what policy.conf was before\n";
  if (!files.measurements.empty()) {
    text += "  measurements.db  iterations of the search; `diapason data show` shows them\n";
  }
  if (!files.report.empty()) text += "  report.html      report for a web browser\n";
  if (!files.result.empty()) text += "  result.json      all figures\n";
  if (!files.untouched.empty()) {
    text += "policy.conf there is of an earlier run and was left as it was\n";
  } else if (files.policy.empty()) {
    text += "no policy.conf: only what is confirmed is written\n";
  }
  return text;
}

}  // namespace

std::string JobTuneText(const JobTuneResult& result) {
  std::string text = Printable(result.Headline()) + "\n";
  if (result.interrupted) text += "interrupted: nothing was decided after that\n";
  text += PartsText(result);
  text += VerifiedText(result);
  // The headline has it if it changed.
  const std::string metric = result.metric.Text();
  if (!metric.empty() && result.verdict != Verdict::kMetricChanged)
    text += "metric     " + Printable(metric) + "\n";
  const auto failed =
      std::count_if(result.launches.begin(), result.launches.end(),
                    [](const LaunchSummary& one) { return one.status != 0 && !one.ended_by_us; });
  if (!result.launches.empty()) {
    text += Format("started    the command {} in {:.0f} s{}\n",
                   result.launches.size() == 1 ? "once" : Count(result.launches.size(), "time"),
                   result.seconds,
                   failed > 0 ? Format("; {} of them failed", static_cast<size_t>(failed)) : "");
  }
  const std::string captured = result.shares.ByLaunchesText();
  if (!captured.empty()) text += "captured   " + captured + "\n";
  text += UntriedText(result);
  text += ContextsText(result);
  text += FilesText(result);
  const std::string use = result.UseCommand();
  if (!use.empty()) text += "\nto use it:\n  " + Printable(use) + "\n";
  return text;
}

}  // namespace diapason::cli
