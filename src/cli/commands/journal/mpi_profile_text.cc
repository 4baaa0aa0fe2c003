#include "cli/commands/journal/mpi_profile_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/units.h"
#include "cli/framework/json_text.h"
#include "dataset/summary.h"
#include "dataset/words.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using dataset::Printable;
using dataset::TimeText;
using mpi_profile::Fixed;
using mpi_profile::MpiCallClass;
using mpi_profile::MpiProfile;
using nlohmann::ordered_json;
using report::Table;

constexpr size_t kMostClasses = 20;
constexpr size_t kLongestLine = 1000;

const char* FixedName(Fixed fixed) {
  switch (fixed) {
    case Fixed::kNo:
      return "";
    case Fixed::kNotSearched:
      return "not searched";
    case Fixed::kNonBlocking:
      return "non-blocking";
    case Fixed::kNoRules:
      return "no rules";
    case Fixed::kInter:
      return "intercommunicator";
    case Fixed::kNotCommutative:
      return "not commutative";
    case Fixed::kAlone:
      return "one rank, or no data";
    case Fixed::kNotOpenMpi:
      return "not Open MPI";
  }
  return "";
}

// The call site with most of the calls.
std::string SiteOf(const MpiCallClass& one) {
  const auto most =
      std::max_element(one.sites.begin(), one.sites.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == one.sites.end()) return "";
  return Printable(most->first, 60) +
         (one.sites.size() > 1 ? Format(" and {} more", one.sites.size() - 1) : "");
}

std::string Classes(const MpiProfile& profile) {
  using Align = Table::Align;
  Table table({"call", "size", "ranks", "calls", "time", "share", "waiting", "called at",
               "rules cannot change it"});
  table.SetAlign({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                  Align::kRight, Align::kRight, Align::kLeft, Align::kLeft});
  size_t shown = 0;
  for (const MpiCallClass& one : profile.classes) {
    if (++shown > kMostClasses) break;
    table.Add({std::string(FactsOf(one.call).word), AboutBytes(one.bytes), Format("{}", one.ranks),
               Format("{}", one.calls), TimeText(one.seconds),
               Format("{:.0f} %", 100 * one.seconds / profile.recorded_seconds),
               TimeText(std::max(0.0, one.seconds - one.quickest)), SiteOf(one),
               FixedName(one.fixed)});
  }
  std::string text = table.Text();
  if (profile.classes.size() > kMostClasses) {
    text += Format("and {} more\n", profile.classes.size() - kMostClasses);
  }
  return text;
}

ordered_json ClassJson(const MpiCallClass& one) {
  ordered_json sites = ordered_json::object();
  for (const auto& [site, calls] : one.sites) sites[Printable(site, kLongestLine)] = calls;
  return {{"call", FactsOf(one.call).word},
          {"bytes", one.bytes},
          {"ranks", one.ranks},
          {"calls", one.calls},
          {"seconds", one.seconds},
          {"waiting_seconds", std::max(0.0, one.seconds - one.quickest)},
          {"can_change", one.fixed == Fixed::kNo},
          {"why_not", FixedName(one.fixed)},
          {"sites", std::move(sites)}};
}

}  // namespace

std::string MpiProfileText(const MpiProfile& profile) {
  std::string text = profile.Headline() + "\n" + profile.ShareText() + "\n";
  if (profile.open_mpi) text += profile.RulesText() + "\n";
  text += Format("library: {}\nprogram: {}, {}\n", Printable(profile.library, kLongestLine),
                 Printable(profile.program, kLongestLine), Count(profile.ranks, "rank"));
  if (profile.job.iteration > 0) {
    text += Format("iterations: {} timed, {} to {} (10 to 90 %)\n", profile.job.iterations,
                   TimeText(profile.job.iteration_low), TimeText(profile.job.iteration_high));
  }
  text += "\n" + Classes(profile) +
          "\nTimes are those inside the calls, of the whole program, mean over the ranks. Waiting "
          "is what they take beyond\nthe rank that spends least: time for ranks that come later, "
          "which no algorithm shortens.\n";
  for (const std::string& note : profile.notes) {
    text += "note: " + Printable(note, kLongestLine) + "\n";
  }
  return text;
}

std::string MpiProfileJson(const MpiProfile& profile) {
  ordered_json classes = ordered_json::array();
  for (const MpiCallClass& one : profile.classes) classes.push_back(ClassJson(one));
  const ordered_json whole = {{"headline", profile.Headline()},
                              {"library", Printable(profile.library, kLongestLine)},
                              {"program", Printable(profile.program, kLongestLine)},
                              {"ranks", profile.ranks},
                              {"missing_ranks", profile.missing},
                              {"program_seconds", profile.program_seconds},
                              {"collective_seconds", profile.collective_seconds},
                              {"collective_share", profile.CollectiveShare()},
                              {"changeable_share", profile.ChangeableShare()},
                              {"iterations", profile.job.iterations},
                              {"iteration_us", profile.job.iteration * 1e6},
                              {"iteration_collectives_us", profile.job.times.total * 1e6},
                              {"iteration_waiting_us", profile.job.times.waiting * 1e6},
                              {"classes", std::move(classes)},
                              {"notes", profile.notes}};
  return JsonText(whole);
}

}  // namespace diapason::cli
