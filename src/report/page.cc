#include "report/page.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "policy/origin.h"
#include "report/json_writer.h"

namespace diapason::report {
namespace {

// Replaces every "@NAME@" in one pass: inserted text is not scanned again.
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

// "95 %: 1.20 to 1.30; geometric mean of 2 sizes": the basis of a gain.
std::string BasisOf(const PageHeadline& headline) {
  const std::string sizes =
      headline.sizes == 1
          ? "one size"
          : "geometric mean of " + CasesText(headline.sizes, headline.changed_extent);
  if (headline.too_few > 0) return sizes + "; few samples, so no 95 % interval";
  return Format("95 %: {:.2f} to {:.2f}; ", headline.gain.interval.low,
                headline.gain.interval.high) +
         sizes;
}

// The sentence after the gain of a policy, or instead of it.
std::string RestOf(const PageHeadline& headline, const char* what) {
  std::string text;
  if (headline.left_alone > 0) {
    text += headline.left_alone == headline.measured
                ? Format(" The policy leaves {} to the library at all sizes measured.", what)
                : Format(" {} of {} measured {} left to the library.", headline.left_alone,
                         CasesText(headline.measured, headline.measured_extent),
                         headline.left_alone == 1 ? "is" : "are");
  }
  if (headline.unverified > 0) {
    text +=
        Format(" What the policy runs was not verified at {}.", Count(headline.unverified, "size"));
  }
  return text;
}

std::string ComeOf(const PageHeadline& headline, const char* what) {
  if (headline.by_policy && headline.sizes == 0) return RestOf(headline, what);
  if (headline.sizes == 0) {
    if (headline.left_alone == 0) return "";
    return headline.only_default == headline.left_alone
               ? Format(" Of {} nothing but the library's default was measured.", what)
               : Format(" The data support no change for {}.", what);
  }
  const std::string text = Format(
      " {}: {}{} are {:.2f} times as fast as the library's default ({}).",
      headline.verified ? "Verified, default and tuned in turns" : "In the search, not verified",
      headline.by_policy ? "where the policy changes them, " : "", what, headline.gain.median,
      BasisOf(headline));
  return headline.by_policy ? text + RestOf(headline, what) : text;
}

std::string PlaceText(const PagePlace& place) {
  std::string text = place.library.empty() ? "a library that is not known" : place.library;
  if (!place.version.empty()) text += " " + place.version;
  if (!place.gpu.empty()) text += " on " + place.gpu;
  return text;
}

// Each library has its own sentence: they are never pooled.
std::string ComeOf(const PageData& data, const PageHeadline& first,
                   const std::vector<PageHeadline>& others, const std::string& what) {
  if (data.places.size() < 2 || !first.tells()) return ComeOf(first, what.c_str());
  constexpr size_t kMostOthers = 3;
  const auto named = [&](const PageHeadline& headline) {
    return what + " with " + PlaceText(data.places[headline.place]);
  };
  std::string text = ComeOf(first, named(first).c_str());
  for (size_t i = 0; i < std::min(others.size(), kMostOthers); ++i) {
    text += ComeOf(others[i], named(others[i]).c_str());
  }
  if (others.size() > kMostOthers) {
    text += Format(" The summary has {} more.", others.size() - kMostOthers);
  }
  return text;
}

// The most important fact in a job's journals is whether its ranks agreed.
std::string JournalText(const PageData& data) {
  std::string text;
  const bool bad = data.agreement.compared > 0 && !data.agreement.agree();
  if (data.agreement.journals > 1 && (bad || data.samples == 0)) {
    text += " " + data.agreement.Verdict() + ".";
  }
  if (data.samples > 0 || data.journals.empty()) return text;
  size_t changed = 0;
  for (const PageLearning& learning : data.learning) {
    changed += std::any_of(learning.arms.begin(), learning.arms.end(),
                           [](const PageLearning::Arm& arm) {
                             return arm.config != 0 && arm.state == "in use";
                           })
                   ? 1
                   : 0;
  }
  if (data.learning.empty()) return text + " Nothing was learned.";
  return text + Format(
                    " Learned in {}; at the end {} of them {} something else than the "
                    "library's default.",
                    Count(data.learning.size(), "context"), changed, changed == 1 ? "runs" : "run");
}

bool FromRecordedCalls(const PageMap& map) { return map.origin == policy::kFromRecordedCalls; }

}  // namespace

std::string LeadText(const PageData& data) {
  if (data.samples == 0) {
    return Count(data.journals.size(), "journal") + ", no measurements." + JournalText(data);
  }
  std::set<std::string> where;
  for (const PagePlace& place : data.places) {
    where.insert(PlaceText(place));
    if (where.size() == 3) break;
  }
  std::string text = data.simulated == data.samples ? "Simulated: " : "";
  text += Count(data.samples, "sample") + " of " + Join({where.begin(), where.end()}, ", ");
  if (data.places.size() > where.size()) text += " and others";
  const std::string alone = std::any_of(data.maps.begin(), data.maps.end(), FromRecordedCalls)
                                ? Format(" Note: {}.", policy::kCallsAlone)
                                : "";
  if (!data.sentence.empty()) {
    const std::string end = data.sentence.ends_with('.') ? "" : ".";
    return text + ". " + data.sentence + end + JournalText(data) + alone;
  }
  return text + "." + JournalText(data) +
         ComeOf(data, data.headline, data.other_headlines, "collectives") + alone +
         ComeOf(data, data.iterations, data.other_iterations, "whole iterations");
}

std::string FillPage(const PageParts& parts, const std::string& nonce) {
  const std::string title = HtmlText(parts.title);
  const std::string lead = HtmlText(parts.lead);
  return Fill(PageTemplate(), {{"@NONCE@", nonce},
                               {"@TITLE@", title},
                               {"@LEAD@", lead},
                               {"@VERSION@", parts.version},
                               {"@STYLE@", PageStyle()},
                               {"@SCRIPT@", parts.script},
                               {"@DATA@", parts.json}});
}

std::string PageNonce() {
  // Not std::random_device: it would need a newer glibc than we promise to run on.
  unsigned random[4] = {};
  (void)::getentropy(random, sizeof(random));
  std::string word;
  for (const unsigned number : random) word += Format("{:08x}", number);
  return word;
}

std::string PageHtml(const PageData& data, const std::string& nonce, size_t most_bytes) {
  PageLimits limits;
  std::string page;
  // Each step removes a quarter: enough steps for any amount of data.
  constexpr int kMostSteps = 30;
  for (int step = 0; step < kMostSteps; ++step) {
    PageData shown = data;
    LimitPage(limits, &shown);
    page = FillPage({shown.title, LeadText(shown), shown.version, PageJson(shown), PageScript()},
                    nonce);
    if (page.size() <= most_bytes) break;
    limits = limits.Smaller();
  }
  return page;
}

}  // namespace diapason::report
