// A comparison for people: on a terminal, and in a comment of a review.
#include "base/text.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/interval_text.h"
#include "base/printable.h"
#include "compare/comparison.h"
#include "dataset/summary.h"
#include "report/table.h"

namespace diapason::compare {
namespace {

constexpr size_t kMostListed = 20;

std::string Microseconds(double seconds) {
  const double us = seconds * 1e6;
  return us < 1000 ? Format("{:.2f}", us) : Format("{:.1f}", us);
}

std::string Signed(double share) {
  const double percent = share * 100;
  // No "-0.0".
  return Format("{:+.1f}", std::fabs(percent) < 0.05 ? 0.0 : percent);
}

std::string SideText(const char* word, const std::string& name,
                     const std::vector<Launch>& launches) {
  std::set<std::string> libraries;
  for (const Launch& launch : launches) {
    if (launch.machine.library.empty()) continue;
    libraries.insert(
        launch.machine.library +
        (launch.machine.library_version.empty() ? "" : " " + launch.machine.library_version) +
        (launch.machine.simulated ? " (simulated)" : ""));
  }
  std::string text = Format("{}  {}: {} {}", word, Printable(name), launches.size(),
                            launches.size() == 1 ? "launch" : "launches");
  if (!libraries.empty()) text += ", " + Join({libraries.begin(), libraries.end()}, ", ");
  return Printable(text) + "\n";
}

std::string ConfigOf(const CallComparison& one) {
  std::string text = one.point.ConfigText();
  if (one.ran_before == one.ran_after) {
    if (!one.ran_before.empty()) text += " (" + one.ran_before + ")";
  } else if (!one.ran_before.empty() && !one.ran_after.empty()) {
    text += " (" + one.ran_before + " -> " + one.ran_after + ")";
  }
  return text;
}

std::string VerdictText(const CallComparison& one) {
  std::string text(VerdictName(one.verdict));
  if (one.fails) text += ", fails";
  if (!one.why.empty()) text += ": " + one.why;
  return text;
}

std::string LaunchesText(const Change& change) {
  return Format("{} + {}{}", change.old_launches, change.new_launches,
                change.paired ? ", in turns" : "");
}

std::string FailText(const Comparison& comparison) {
  if (!comparison.options.fail_on) return "";
  const std::string limit = Format("{:g} %", *comparison.options.fail_on * 100);
  if (comparison.Failing() == 0) return "no call is slower by more than " + limit + " beyond doubt";
  return Count(comparison.Failing(), "call") + " slower by more than " + limit + " beyond doubt";
}

void AddOnly(const char* where, const std::vector<dataset::Point>& points, std::string* text) {
  if (points.empty()) return;
  *text += Format("only in {} ({})\n", where, Count(points.size(), "call"));
  for (size_t i = 0; i < std::min(points.size(), kMostListed); ++i) {
    *text += "  " + Printable(CallText(points[i])) + "\n";
  }
  if (points.size() > kMostListed) {
    *text += Format("  and {} more; --json lists all\n", points.size() - kMostListed);
  }
}

std::string CellText(const std::string& text) {
  std::string cell;
  for (const char c : Printable(text)) {
    if (c == '|' || c == '<' || c == '>' || c == '`' || c == '*' || c == '[' || c == ']')
      cell += '\\';
    cell += c;
  }
  return cell;
}

}  // namespace

std::string CallText(const dataset::Point& point) {
  std::string text = dataset::ContextText(point);
  const size_t comma = text.find(',');
  text.insert(std::min(comma, text.size()), " " + dataset::SizeText(point.bytes));
  if (!point.IsDefault()) text += ", " + point.ConfigText();
  return text;
}

std::string ShareText(double share) { return Signed(share) + " %"; }

std::string ChangeIntervalText(const Change& change) {
  if (change.has_interval()) return "[" + Signed(change.low()) + ", " + Signed(change.high()) + "]";
  if (!change.has_range) return "-";
  return "(" + Signed(change.range_low) + " to " + Signed(change.range_high) + ")";
}

std::string SummaryText(const Comparison& comparison) {
  std::string text = Format(
      "{}: {} slower, {} faster, {} same, {} cannot tell", Count(comparison.calls.size(), "call"),
      comparison.Count(Verdict::kSlower), comparison.Count(Verdict::kFaster),
      comparison.Count(Verdict::kSame), comparison.Count(Verdict::kCannotTell));
  if (comparison.calls.empty()) return text;
  text += "; geometric mean " + ShareText(comparison.geometric_mean);
  if (comparison.overall && comparison.overall->has_interval()) {
    const bool all = comparison.overall_calls == comparison.calls.size();
    text += (all ? " "
                 : Format("; of the {} calls that every launch has {} ", comparison.overall_calls,
                          ShareText(comparison.overall->share()))) +
            ChangeIntervalText(*comparison.overall);
  }
  return text;
}

std::string MethodText(const Comparison& comparison) {
  bool paired = false;
  bool assumed = false;
  for (const CallComparison& one : comparison.calls) {
    paired |= one.change.paired;
    assumed |= one.change.assumed;
  }
  std::string text = Format(
      "a launch counts as one figure, the median of its samples; [95 %] of the mean change by the "
      "spread of launches ({}; from {} on, a fifth at each end is trimmed; a spread of {:g} % "
      "assumed beforehand, with the weight of {:g} "
      "launches); slower and faster: Holm's correction over {}, together wrong in {:g} % at most; "
      "same: the interval lies within {:g} %",
      paired ? "in pairs where they took turns" : "not paired", kLeastTrimmed, kAssumedSpread * 100,
      kAssumedFreedom, Count(comparison.calls.size(), "call"), comparison.options.alpha * 100,
      comparison.options.threshold * 100);
  if (assumed) {
    text += "; one launch on each side shows nothing of how launches differ: give several";
  }
  return text;
}

std::string ComparisonText(const Comparison& comparison) {
  std::string text = SideText("old", comparison.old_name, comparison.old_launches) +
                     SideText("new", comparison.new_name, comparison.new_launches);
  for (const Difference& one : comparison.differences) {
    text += Printable(Format("changed  {}: {} -> {}", one.what,
                             one.before.empty() ? "not set" : one.before,
                             one.after.empty() ? "not set" : one.after)) +
            "\n";
  }
  for (const std::string& note : comparison.notes) text += "note  " + Printable(note) + "\n";
  for (size_t i = 0; i < comparison.calls.size();) {
    const std::string context = dataset::ContextText(comparison.calls[i].point);
    report::Table table({"size", "old us", "new us", "change", "[95 %] or (range)", "launches",
                         "configuration", "verdict"});
    using Align = report::Table::Align;
    table.SetAlign({Align::kRight, Align::kRight, Align::kRight, Align::kRight});
    for (; i < comparison.calls.size(); ++i) {
      const CallComparison& one = comparison.calls[i];
      if (dataset::ContextText(one.point) != context) break;
      table.Add({dataset::SizeText(one.point.bytes), Microseconds(one.change.old_seconds),
                 Microseconds(one.change.new_seconds), ShareText(one.change.share()),
                 ChangeIntervalText(one.change), LaunchesText(one.change), ConfigOf(one),
                 VerdictText(one)});
    }
    text += "\n" + Printable(context) + "\n" + table.Text();
  }
  text += "\n";
  AddOnly("old", comparison.only_old, &text);
  AddOnly("new", comparison.only_new, &text);
  text += SummaryText(comparison) + "\n";
  text += "overall  " + std::string(VerdictName(comparison.Overall())) + "\n";
  if (const std::string failing = FailText(comparison); !failing.empty()) text += failing + "\n";
  return text + "method   " + MethodText(comparison) + "\n";
}

std::string ComparisonMarkdown(const Comparison& comparison) {
  constexpr size_t kMostRows = 200;
  std::string text = "### Collectives: " + std::string(VerdictName(comparison.Overall())) + "\n\n" +
                     CellText(SummaryText(comparison)) + "\n";
  if (const std::string failing = FailText(comparison); !failing.empty()) {
    text += "\n**" + failing + "**\n";
  }
  text +=
      "\n| call | old us | new us | change | 95 % or range | verdict |\n"
      "|---|---:|---:|---:|---|---|\n";
  // Those that matter first: a comment shows its head.
  std::vector<const CallComparison*> order;
  for (const CallComparison& one : comparison.calls) order.push_back(&one);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(!a->fails, a->verdict) < std::pair(!b->fails, b->verdict);
  });
  for (size_t i = 0; i < std::min(order.size(), kMostRows); ++i) {
    const CallComparison& one = *order[i];
    text += Format("| {} | {} | {} | {} | {} | {}{} |\n", CellText(CallText(one.point)),
                   Microseconds(one.change.old_seconds), Microseconds(one.change.new_seconds),
                   ShareText(one.change.share()), CellText(ChangeIntervalText(one.change)),
                   std::string(VerdictName(one.verdict)), one.fails ? ", fails" : "");
  }
  if (order.size() > kMostRows) {
    text += Format("\n{} further calls are not shown.\n", order.size() - kMostRows);
  }
  for (const Difference& one : comparison.differences) {
    text += "\n- changed: " +
            CellText(Format("{}: {} -> {}", one.what, one.before.empty() ? "not set" : one.before,
                            one.after.empty() ? "not set" : one.after));
  }
  if (!comparison.differences.empty()) text += "\n";
  const size_t only = comparison.only_old.size() + comparison.only_new.size();
  if (only > 0) {
    text += Format("\n{} only in the old and {} only in the new measurements.\n",
                   Count(comparison.only_old.size(), "call"),
                   Count(comparison.only_new.size(), "call"));
  }
  return text + "\nMethod: " + CellText(MethodText(comparison)) + ".\n";
}

}  // namespace diapason::compare
