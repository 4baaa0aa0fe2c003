#include "report/page.h"

#include <array>
#include <set>
#include <utility>

#include "base/text.h"
#include "report/json_writer.h"

namespace diapason::report {
namespace {

// Every "@NAME@" is replaced once, in one walk: what is put in is never looked at again.
std::string Fill(std::string_view page,
                 const std::vector<std::pair<std::string_view, std::string_view>>& values) {
  std::string filled;
  while (true) {
    const size_t at = page.find('@');
    filled += page.substr(0, at);
    if (at == std::string_view::npos) return filled;
    page.remove_prefix(at);
    bool known = false;
    for (const auto& [name, value] : values) {
      if (!page.starts_with(name)) continue;
      filled += value;
      page.remove_prefix(name.size());
      known = true;
      break;
    }
    if (!known) {
      filled += '@';
      page.remove_prefix(1);
    }
  }
}

// What stands behind the gain of a policy, or instead of it.
std::string RestOf(const PageHeadline& headline, const char* what) {
  std::string text;
  if (headline.left_alone > 0) {
    text += headline.left_alone == headline.measured
                ? Format(" The policy leaves %s to the library at all sizes measured.", what)
                : Format(" %zu of %s measured %s left to the library.", headline.left_alone,
                         Count(headline.measured, "size").c_str(),
                         headline.left_alone == 1 ? "is" : "are");
  }
  if (headline.unverified > 0) {
    text += Format(" What the policy runs was not verified at %s.",
                   Count(headline.unverified, "size").c_str());
  }
  return text;
}

std::string ComeOf(const PageHeadline& headline, const char* what) {
  if (headline.by_policy && headline.sizes == 0) return RestOf(headline, what);
  if (headline.sizes == 0) {
    return headline.left_alone == 0 ? "" : Format(" The data support no change for %s.", what);
  }
  const Figure& gain = headline.gain;
  const std::string text =
      Format(" %s: %s%s are %.2f times as fast as the library's default (95 %%: %.2f to %.2f; %s).",
             headline.verified ? "Verified on fresh ranks" : "In the search, not verified",
             headline.by_policy ? "where the policy changes them, " : "", what, gain.median,
             gain.interval.low, gain.interval.high,
             headline.sizes == 1 ? "one size"
                                 : Format("geometric mean of %zu sizes", headline.sizes).c_str());
  return headline.by_policy ? text + RestOf(headline, what) : text;
}

}  // namespace

std::string LeadText(const PageData& data) {
  if (data.samples == 0) return Count(data.journals.size(), "journal") + ", no measurements.";
  std::set<std::string> where;
  for (const PagePlace& place : data.places) {
    std::string text = place.library.empty() ? "a library that is not known" : place.library;
    if (!place.version.empty()) text += " " + place.version;
    if (!place.gpu.empty()) text += " on " + place.gpu;
    where.insert(text);
    if (where.size() == 3) break;
  }
  std::string text = data.simulated == data.samples ? "Simulated: " : "";
  text += Count(data.samples, "sample") + " of " + Join({where.begin(), where.end()}, ", ");
  if (data.places.size() > where.size()) text += " and others";
  return text + "." + ComeOf(data.headline, "collectives") +
         ComeOf(data.iterations, "whole iterations");
}

std::string PageHtml(const PageData& data, const std::string& nonce, size_t most_bytes) {
  PageLimits limits;
  std::string page;
  // Each time a quarter less: from any amount these steps lead to one that fits.
  constexpr int kMostSteps = 30;
  for (int step = 0; step < kMostSteps; ++step) {
    PageData shown = data;
    LimitPage(limits, &shown);
    const std::string json = PageJson(shown);
    const std::string title = HtmlText(shown.title);
    const std::string lead = HtmlText(LeadText(shown));
    page = Fill(PageTemplate(), {{"@NONCE@", nonce},
                                 {"@TITLE@", title},
                                 {"@LEAD@", lead},
                                 {"@VERSION@", shown.version},
                                 {"@STYLE@", PageStyle()},
                                 {"@SCRIPT@", PageScript()},
                                 {"@DATA@", json}});
    if (page.size() <= most_bytes) break;
    limits = limits.Smaller();
  }
  return page;
}

}  // namespace diapason::report
