#include "cli/commands/bench/bench_policy_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/interval_text.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/framework/json_text.h"
#include "domain/collectives.h"
#include "domain/decision.h"

namespace diapason::cli {
namespace {

using measure::PolicyCheck;
using measure::PolicySummary;
using measure::PolicyVerdict;
using measure::Subject;
using measure::TimingFigure;
using measure::Trial;
using nlohmann::ordered_json;

std::string RedopName(const Trial& trial) {
  return Reduces(trial.operation) ? ReduceOpName(trial.reduce) : "none";
}

// The call without its size; the type and the reduction only where they distinguish calls.
std::string KindText(const PolicyPlan& plan, const Trial& trial) {
  std::string text = measure::CollectiveText(trial.operation);
  if (!plan.several_kinds) return text;
  text += std::string(" ") + measure::TestsTypeName(trial.type);
  return Reduces(trial.operation) ? text + " " + RedopName(trial) : text;
}

std::string ChoiceText(const Subject& subject, const Trial& trial) {
  return ConfigText(subject.library, NamesOf(trial.operation), trial.config);
}

// "faster", or the failure: "refused", "default: hang".
std::string VerdictText(const PolicyCheck& check) {
  const TimingFigure* const failure = check.Failure();
  if (failure == nullptr) return measure::PolicyVerdictName(check.verdict);
  return std::string(failure == &check.library ? "default: " : "") +
         dataset::OutcomeName(failure->outcome);
}

std::string Micros(const TimingFigure& figure) {
  return figure.rounds.empty() ? "-" : Format("{:.2f}", figure.median * 1e6);
}

double Microseconds(double seconds) { return std::round(seconds * 1e9) / 1e3; }
double Rounded(double value) { return std::round(value * 1e6) / 1e6; }

ordered_json FigureJson(const TimingFigure& figure) {
  ordered_json json;
  json["outcome"] = dataset::OutcomeName(figure.outcome);
  if (!figure.note.empty()) json["note"] = figure.note;
  json["wrong"] = figure.wrong < 0 ? ordered_json(nullptr) : ordered_json(figure.wrong);
  ordered_json rounds = ordered_json::array();
  for (const double seconds : figure.rounds) rounds.push_back(Microseconds(seconds));
  if (!figure.rounds.empty()) {
    json["median_us"] = Microseconds(figure.median);
    json["low_us"] = Microseconds(figure.interval.low);
    json["high_us"] = Microseconds(figure.interval.high);
    if (!figure.HasInterval()) json["range"] = true;  // low and high are those of all rounds
  }
  json["rounds_us"] = std::move(rounds);
  return json;
}

ordered_json RowJson(const Subject& subject, const DecidedCall& call, const PolicyCheck& check) {
  const Trial& trial = check.trial;
  ordered_json row;
  row["collective"] = measure::CollectiveText(trial.operation);
  row["bytes"] = trial.bytes;
  row["count"] = measure::CountOf(trial, subject.ranks);
  row["type"] = measure::TestsTypeName(trial.type);
  row["redop"] = RedopName(trial);
  row["root"] = HasRoot(trial.operation) ? trial.root : -1;
  row["policy_says"] = ChoiceText(subject, trial);
  if (call.line > 0) row["line"] = call.line;
  row["default"] = FigureJson(check.library);
  if (!trial.config.IsDefault()) row["policy"] = FigureJson(check.policy);
  if (!check.gains.empty()) {
    row["gain"] = Rounded(check.gain);
    if (check.gains.size() >= measure::kLeastJudgedRounds) {
      row["gain_low"] = Rounded(check.interval.low);
      row["gain_high"] = Rounded(check.interval.high);
    }
    row["gains"] = ordered_json::array();
    for (const double gain : check.gains) row["gains"].push_back(Rounded(gain));
  }
  row["verdict"] = measure::PolicyVerdictName(check.verdict);
  return row;
}

report::RowTable PolicyColumns(const PolicyPlan& plan, const Subject& subject) {
  size_t kind = std::string("collective").size();
  size_t size = std::string("size").size();
  size_t choice = std::string("policy").size();
  for (const DecidedCall& call : plan.calls) {
    kind = std::max(kind, KindText(plan, call.trial).size());
    size = std::max(size, FormatBytes(call.trial.bytes).size());
    choice = std::max(choice, ChoiceText(subject, call.trial).size());
  }
  return report::RowTable({{"collective", kind, false, 9},
                           {"size", size, true, 8},
                           {"policy", choice, false, 4},
                           {"default us", 10, true, 2},
                           {"policy us", 10, true, 3},
                           {"gain", 8, true, 7},
                           {"[95 %] or (range)", 17, true, 1},
                           {"verdict", 13, false, 5}},
                          report::CurrentTableStyle().columns);
}

}  // namespace

PolicyLines::PolicyLines(const PolicyPlan& plan, const Subject& subject)
    : plan_(plan), subject_(subject), columns_(PolicyColumns(plan, subject)) {}

std::string PolicyLines::Head(const std::string& file) const {
  std::string text = Format("# {}, {} on {}{}\n", subject_.description,
                            Count(static_cast<size_t>(subject_.ranks), "rank"),
                            Count(static_cast<size_t>(subject_.nodes), "node"),
                            subject_.simulated ? "; every figure is simulated" : "");
  text += Format("# policy {}: {} of {} can match here ({}, {})\n", file, plan_.rows_here,
                 Count(plan_.policy.rules.size(), "row"),
                 std::string(LibraryTitle(plan_.policy.library)),
                 policy::DigestText(policy::Digest(plan_.policy)));
  if (plan_.rows_skipped > 0) {
    text += "# skipped, as the plugin skips rows that depend on regBuff: " +
            Count(plan_.rows_skipped, "row") + "; DIAPASON_REGBUFF=1 uses them\n";
  }
  if (subject_.library == Library::kRccl && !subject_.simulated) {
    text +=
        "# the default here is RCCL with the diapason plugin loaded, which disables RCCL's own "
        "table\n";
  }
  text +=
      "# medians of the slowest rank; gain: the default's time over the policy's, the median over "
      "the rounds\n";
  if (const std::string crowded = measure::CrowdedText(subject_); !crowded.empty()) {
    text += "# " + crowded + "\n";
  }
  if (const std::string left_out = columns_.LeftOut(); !left_out.empty()) {
    text += "# " + left_out + "\n";
  }
  return text + columns_.Titles();
}

std::vector<std::string> PolicyLines::Cells(const PolicyCheck& check) const {
  const bool compared = !check.gains.empty() && check.Failure() == nullptr;
  return {KindText(plan_, check.trial),
          FormatBytes(check.trial.bytes),
          ChoiceText(subject_, check.trial),
          Micros(check.library),
          Micros(check.policy),
          compared ? Format("{:.2f} x", check.gain) : "-",
          compared ? IntervalText(Format("{:.2f}", check.interval.low),
                                  Format("{:.2f}", check.interval.high), check.gains.size())
                   : "-",
          VerdictText(check)};
}

std::string PolicyLines::Row(const PolicyCheck& check) const {
  using Tone = report::Table::Tone;
  Tone verdict = Tone::kPlain;
  if (check.Failure() != nullptr || check.verdict == PolicyVerdict::kSlower) verdict = Tone::kBad;
  if (check.Failure() == nullptr && check.verdict == PolicyVerdict::kFaster) verdict = Tone::kGood;
  std::vector<Tone> tones(8, Tone::kPlain);
  tones[5] = tones[7] = verdict;
  return columns_.Line(Cells(check), tones);
}

report::Table PolicyLines::Whole(const std::vector<PolicyCheck>& checks) const {
  using Align = report::Table::Align;
  report::Table table({"collective", "size", "policy", "default us", "policy us", "gain",
                       "[95 %] or (range)", "verdict"});
  table.SetAlign({Align::kLeft, Align::kRight, Align::kLeft, Align::kRight, Align::kRight,
                  Align::kRight, Align::kRight});
  for (const PolicyCheck& check : checks) table.Add(Cells(check));
  return table;
}

std::string PolicyTail(const PolicyPlan& plan, const Subject& subject,
                       const std::vector<PolicyCheck>& checks) {
  const PolicySummary summary = measure::Summarize(checks);
  std::string text;
  if (summary.compared == 0 && summary.failed == 0) {
    text = "no row of the policy applies to these calls: the library makes all choices\n";
  } else {
    if (summary.compared > 0) {
      const PolicyCheck& worst = checks[summary.worst];
      text = Format("geometric mean of the gains: {:.2f} x, over {} with a row\n",
                    summary.mean_gain, Count(summary.compared, "size"));
      text += Format("worst: {:.2f} x, {} {} with {}\n", worst.gain, KindText(plan, worst.trial),
                     FormatBytes(worst.trial.bytes), ChoiceText(subject, worst.trial));
    }
    text += Format("{} faster, {} slower, {} no difference", summary.faster, summary.slower,
                   summary.no_difference);
    if (summary.too_few_rounds > 0) {
      text += Format(", {} not judged: that needs {} rounds", summary.too_few_rounds,
                     measure::kLeastJudgedRounds);
    }
    text += summary.failed > 0 ? Format(", {} failed\n", summary.failed) : "\n";
  }
  for (const PolicyCheck& check : checks) {
    const TimingFigure* const failure = check.Failure();
    if (failure == nullptr) continue;
    text += "# " + KindText(plan, check.trial) + " " + FormatBytes(check.trial.bytes) + ": " +
            VerdictText(check) + ": " + failure->note + "\n";
  }
  return text;
}

std::string PolicyJson(const std::string& file, const PolicyPlan& plan, const Subject& subject,
                       const std::vector<PolicyCheck>& checks) {
  const PolicySummary summary = measure::Summarize(checks);
  ordered_json json;
  json["backend"] = subject.backend;
  json["library"] = subject.machine.library;
  json["library_version"] = subject.machine.library_version;
  json["description"] = subject.description;
  json["simulated"] = subject.simulated;
  json["ranks"] = subject.ranks;
  json["nodes"] = subject.nodes;
  json["policy"] = {{"file", file},
                    {"digest", policy::DigestText(policy::Digest(plan.policy))},
                    {"rows", plan.policy.rules.size()},
                    {"rows_here", plan.rows_here},
                    {"rows_skipped", plan.rows_skipped}};
  json["rows"] = ordered_json::array();
  for (size_t i = 0; i < checks.size(); ++i) {
    json["rows"].push_back(RowJson(subject, plan.calls[i], checks[i]));
  }
  ordered_json counts{{"compared", summary.compared},
                      {"faster", summary.faster},
                      {"slower", summary.slower},
                      {"no_difference", summary.no_difference},
                      {"too_few_rounds", summary.too_few_rounds},
                      {"failed", summary.failed},
                      {"default", summary.left_to_library}};
  if (summary.compared > 0) {
    const PolicyCheck& worst = checks[summary.worst];
    counts["geometric_mean_gain"] = Rounded(summary.mean_gain);
    counts["worst"] = {{"collective", measure::CollectiveText(worst.trial.operation)},
                       {"bytes", worst.trial.bytes},
                       {"gain", Rounded(worst.gain)}};
  }
  json["summary"] = std::move(counts);
  return JsonText(json) + "\n";
}

}  // namespace diapason::cli
