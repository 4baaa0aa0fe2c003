#include "env_tune/report.h"

#include <algorithm>
#include <cmath>

#include "base/interval_text.h"
#include "base/secrets.h"
#include "base/stats.h"
#include "base/text.h"
#include "base/units.h"
#include "env_plan/placement.h"

namespace diapason::env_tune {
namespace {

std::string SecondsText(double seconds) {
  if (seconds >= 100) return Format("{:.0f} s", seconds);
  if (seconds >= 0.1) return Format("{:.3f} s", seconds);
  if (seconds >= 1e-4) return Format("{:.3f} ms", seconds * 1e3);
  return Format("{:.2f} us", seconds * 1e6);
}

std::string DurationText(double seconds) {
  if (seconds < 90) return Format("{:.0f} s", seconds);
  if (seconds < 5400) return Format("{:.0f} min", seconds / 60);
  return Format("{:.1f} h", seconds / 3600);
}

std::string ShiftText(const ShiftEstimate& shift, size_t blocks) {
  return GainText(shift.estimate) + " " +
         IntervalText(GainText(shift.low), GainText(shift.high), blocks);
}

std::string MemoryText(double bytes) { return Format("{:.1f} MiB", bytes / 1048576); }

double MedianOf(const std::vector<RunFigure>& runs, double RunFigure::*field) {
  std::vector<double> values;
  values.reserve(runs.size());
  for (const RunFigure& run : runs) values.push_back(run.*field);
  return values.empty() ? 0 : Median(values);
}

// A block of text as Markdown shows it unchanged.
std::string Block(const std::string& text) {
  std::string out;
  for (const std::string_view line : Split(text, '\n')) {
    out += line.empty() ? "\n" : "    " + std::string(line) + "\n";
  }
  while (out.size() > 1 && out[out.size() - 2] == '\n') out.pop_back();
  return out;
}

std::string Baseline(const TuneRequest& request, const TuneResult& result) {
  const Experiment& experiment = result.experiment;
  const std::vector<RunFigure>& runs = experiment.baseline();
  if (runs.empty()) return "";
  std::string text = Format("Baseline: {}, median of {} runs",
                            ValueText(request, MedianOf(runs, &RunFigure::value)), runs.size());
  text +=
      Format("; CPU time {}, largest process {}.\n", SecondsText(MedianOf(runs, &RunFigure::cpu_s)),
             MemoryText(MedianOf(runs, &RunFigure::memory)));
  const double noise = experiment.Noise();
  text += Format(
      "Noise of a run: {:.2f} %. A gain of {:.1f} % would be found four times out of "
      "five.\n",
      100 * noise, 100 * experiment.Detectable(noise));
  return text;
}

std::string Tried(const TuneResult& result) {
  const Experiment& experiment = result.experiment;
  size_t widest = 7;
  for (const KnobValue& candidate : experiment.candidates()) {
    widest = std::max(widest, CandidateText(candidate).size());
  }
  std::string table = Format("{:<{}}  what came out", "setting", static_cast<int>(widest)) + "\n";
  for (size_t i = 0; i < experiment.candidates().size(); ++i) {
    table +=
        Format("{:<{}}  ", CandidateText(experiment.candidates()[i]), static_cast<int>(widest)) +
        ComparisonText(experiment.comparisons()[i]) + "\n";
  }
  return table;
}

std::string ValidationText(const Experiment& experiment) {
  const Validation& validation = experiment.validation();
  if (experiment.kept().empty()) return "";
  if (!validation.failed.empty()) {
    return "A run with the kept settings failed: " + validation.failed + "\n";
  }
  if (!validation.complete) return "It is not complete: nothing is claimed.\n";
  std::string text = Format(
      "{} fresh blocks, the kept settings against the default: {}, p = {:.3g}: ",
      validation.gains.size(), ShiftText(validation.shift, validation.gains.size()), validation.p);
  text += validation.confirmed ? "confirmed.\n" : "not confirmed.\n";
  text += Format("First half to second half of these runs: tuned {}, default {}",
                 GainText(validation.drift_tuned), GainText(validation.drift_default));
  text += validation.drifts ? ": the tuned runs drift.\n" : ": no drift of their own.\n";
  text += Format("Spread: tuned {:.2f} %, default {:.2f} %{}.\n", 100 * validation.spread_tuned,
                 100 * validation.spread_default, validation.spread_worse ? ": worse" : "");
  return text;
}

}  // namespace

std::string ValueText(const TuneRequest& request, double value) {
  return request.measure == Measure::kPattern ? Format("{:.6g}", value) : SecondsText(value);
}

std::string GainText(double log_gain) {
  const double ratio = std::exp(log_gain);
  if (ratio >= 10) return Format("x {:.0f}", ratio);
  const double percent = 100 * (ratio - 1);
  return Format("{:+.1f} %", std::fabs(percent) < 0.05 ? 0.0 : percent);  // not "-0.0"
}

std::string CandidateText(const KnobValue& candidate) {
  return candidate.name + "=" + candidate.value;
}

std::string ComparisonText(const KnobComparison& comparison) {
  // The budget, or a Ctrl-C, came in the middle.
  const bool cut_short = comparison.verdict == KnobVerdict::kNotTried && !comparison.gains.empty();
  std::string text(cut_short ? "not finished" : VerdictName(comparison.verdict));
  if (!comparison.why.empty()) text += ": " + comparison.why;
  if (comparison.gains.empty()) return text;
  return text + ", " + ShiftText(comparison.shift, comparison.gains.size()) + " in " +
         Count(comparison.gains.size(), "block");
}

std::string BindingText(const Binding& binding) {
  return std::string(BindsName(binding.binds)) + (binding.stated ? " (as stated)" : "") +
         (binding.evidence.empty() ? "" : ": " + Join(binding.evidence, "; "));
}

std::string PlanLine(const TuneRequest& request, const Experiment& experiment, double run_s) {
  const double noise = experiment.Noise();
  const int most = experiment.MostRunsLeft();
  std::string text = Format(
      "a run takes {}, noise {:.2f} %; {} to try, at most {} more runs ({}), seldom more than half "
      "of them",
      SecondsText(run_s), 100 * noise, Count(experiment.candidates().size(), "value"), most,
      DurationText(most * run_s));
  const double one =
      (experiment.RunsForValidation() + 2.0 * experiment.options().most_blocks) * run_s;
  if (one > request.budget_s) {
    text += Format("; the budget of {} is short: one value that helps takes up to {}",
                   DurationText(request.budget_s), DurationText(one));
  }
  return text;
}

std::string FinalText(const TuneResult& result) {
  std::string text;
  for (const auto& [name, value] : result.experiment.Final()) {
    text += "export " + name + "=" + ShellWord(value) + "\n";
  }
  return text;
}

std::string ConclusionText(const TuneRequest& request, const TuneResult& result) {
  const Experiment& experiment = result.experiment;
  const Validation& validation = experiment.validation();
  if (result.end == TuneEnd::kBroken) {
    return result.no_figure ? "the command gives no figure to judge it by: nothing was tuned"
                            : "the command fails by itself: nothing was tuned";
  }
  const std::string go_on = request.state.empty()
                                ? "; with --state it could be gone on with"
                                : "; go on with --resume --state " + ShellWord(request.state);
  if (result.end == TuneEnd::kInterrupted) return "interrupted: nothing is claimed" + go_on;
  if (result.end == TuneEnd::kBudget) {
    return "the budget ended before the validation did: nothing is claimed" + go_on;
  }
  if (validation.confirmed) {
    return Format("{}, confirmed on fresh runs{}",
                  ShiftText(validation.shift, validation.gains.size()),
                  validation.stable() ? "" : "; but look at their stability below");
  }
  if (!experiment.kept().empty()) {
    return "no significant gain: what looked better was not confirmed on fresh runs; keep the "
           "default";
  }
  if (experiment.candidates().empty()) return "nothing to try: name variables with --knob";
  const size_t tried = static_cast<size_t>(std::count_if(
      experiment.comparisons().begin(), experiment.comparisons().end(),
      [](const KnobComparison& one) { return one.verdict != KnobVerdict::kNotTried; }));
  if (tried == 0) {
    return "nothing was tried: the budget of " + DurationText(request.budget_s) +
           " is too short for runs of " + SecondsText(result.run_s) +
           "; a larger --budget, or fewer --validation blocks" + go_on;
  }
  if (tried < experiment.candidates().size()) {
    return Format(
               "no significant gain in {} of {} values, for which the budget sufficed: keep the "
               "default",
               tried, experiment.candidates().size()) +
           go_on;
  }
  return "no significant gain: keep the default";
}

std::string TuneReport(const TuneRequest& request, const TuneResult& result,
                       const host::Machine& machine) {
  const Experiment& experiment = result.experiment;
  std::string text = "# Tuning report\n\n";
  text += "Result: " + ConclusionText(request, result) + ".\n\n";
  const std::string settings = FinalText(result);
  if (!settings.empty()) text += Block(settings) + "\n";
  std::vector<std::string> words;
  words.reserve(request.command.size());
  for (const std::string& word : request.command) words.push_back(ShellWord(MaskSecretsIn(word)));
  text += "Command:\n\n" + Block(Join(words, " ")) + "\n";
  text += "Judged by: " + std::string(MeasureName(request.measure)) +
          (request.measure == Measure::kPattern ? " ('" + request.pattern + "')" : "") +
          (request.design.higher ? ", more is better" : ", less is better") + ".\n";
  text += "What binds: " + BindingText(result.binding) + ".\n";
  text += Baseline(request, result);
  text += Format("Runs: {}", experiment.runs());
  if (result.resumed_runs > 0) text += Format(", {} of them from the state", result.resumed_runs);
  text += ", in " + DurationText(result.elapsed_s) + ".\n\n";
  if (!experiment.candidates().empty()) {
    text += "## What was tried\n\n";
    text += Format(
        "One at a time, in blocks of {} runs in an order drawn by lot. A gain of 10 % is 1.1 "
        "times as "
        "{};\n[its 95 % interval], or (the range) of fewer than six blocks. Kept is what is "
        "significant "
        "({:.3g} % over\neverything tried) and gains {:.3g} % or more.\n\n",
        request.design.abba ? 4 : 2,
        request.design.higher                  ? "much"
        : request.measure == Measure::kPattern ? "little"
                                               : "fast",
        100 * request.design.alpha, 100 * request.design.min_gain);
    text += Block(Tried(result)) + "\n";
  }
  if (!result.left_out.empty()) {
    text += "Left out:\n\n";
    for (const std::string& line : result.left_out) text += "- " + line + "\n";
    text += "\n";
  }
  const std::string validation = ValidationText(experiment);
  if (!validation.empty()) text += "## Validation\n\n" + validation + "\n";
  if (!result.broken.empty()) text += "## Why it failed\n\n" + Block(result.broken) + "\n";
  text += "## Checklist\n\n";
  for (const ChecklistLine& line : Checklist(request, result, machine)) {
    const bool done = line.answer == ChecklistLine::Answer::kDone;
    const char* word = done                                             ? "done"
                       : line.answer == ChecklistLine::Answer::kNotDone ? "not done"
                                                                        : "not applicable";
    text += Format("- [{}] {}: {}: ", done ? "x" : " ", line.what, word) + line.evidence + "\n";
  }
  return text;
}

}  // namespace diapason::env_tune
