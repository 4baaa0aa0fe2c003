// A comparison as one HTML file without scripts.
#include "base/printable.h"
#include "base/text.h"
#include "compare/comparison.h"
#include "report/page.h"

namespace diapason::compare {
namespace {

std::string Row(const std::vector<std::string>& cells, const char* element) {
  std::string row = "<tr>";
  for (const std::string& cell : cells) {
    row += Format("<{0}>{1}</{0}>", element, HtmlText(Printable(cell)));
  }
  return row + "</tr>\n";
}

std::string List(const std::string& title, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = "<section class=\"card\"><h2>" + HtmlText(title) + "</h2>\n<ul>\n";
  for (const std::string& line : lines) text += "<li>" + HtmlText(Printable(line)) + "</li>\n";
  return text + "</ul></section>\n";
}

std::vector<std::string> Calls(const std::vector<dataset::Point>& points) {
  std::vector<std::string> lines;
  for (const dataset::Point& point : points) lines.push_back(CallText(point));
  return lines;
}

std::string Or(const std::string& text) { return text.empty() ? "not set" : text; }

}  // namespace

std::string ComparisonHtml(const Comparison& comparison, const std::string& title) {
  const std::string shown = HtmlText(Printable(title.empty() ? "Old and new collectives" : title));
  // No script runs on this page, and nothing is loaded.
  std::string text =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>" +
      shown + "</title>\n<style>\n" + std::string(report::PageStyle()) +
      "\nmain{max-width:70rem;margin:2rem auto;padding:0 1rem}td,th{padding:.2rem .6rem}"
      ".compare-slower{font-weight:bold}\n</style>\n</head>\n<body>\n<main>\n<h1>" +
      shown + "</h1>\n<p>" + HtmlText(SummaryText(comparison)) + "</p>\n";
  std::vector<std::string> changed;
  for (const Difference& one : comparison.differences) {
    changed.push_back(one.what + ": " + Or(one.before) + " -> " + Or(one.after));
  }
  text += List("What else changed", changed);
  text += "<section class=\"card\"><h2>Calls</h2>\n<table>\n" +
          Row({"call", "old us", "new us", "change", "95 % or range", "launches", "verdict"}, "th");
  for (const CallComparison& one : comparison.calls) {
    const Change& change = one.change;
    text += Row({CallText(one.point), Format("{:.2f}", change.old_seconds * 1e6),
                 Format("{:.2f}", change.new_seconds * 1e6), ShareText(change.share()),
                 ChangeIntervalText(change),
                 Format("{} + {}{}", change.old_launches, change.new_launches,
                        change.paired ? ", in turns" : ""),
                 std::string(VerdictName(one.verdict)) + (one.fails ? ", fails" : "") +
                     (one.why.empty() ? "" : ": " + one.why)},
                "td");
  }
  text += "</table></section>\n";
  text += List("Only in the old measurements", Calls(comparison.only_old));
  text += List("Only in the new measurements", Calls(comparison.only_new));
  text += List("Notes", comparison.notes);
  return text + "<p>Method: " + HtmlText(MethodText(comparison)) +
         ".</p>\n</main>\n</body>\n</html>\n";
}

}  // namespace diapason::compare
