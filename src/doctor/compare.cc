#include "doctor/compare.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/text.h"
#include "doctor/checks.h"

namespace diapason::doctor {
namespace {

constexpr size_t kMostNames = 8;
const char* const kNotTold = "none";

// A job on hosts that differ in these does not run, or fails half-way.
Severity SeverityOf(const std::string& fact) {
  static constexpr std::array<std::string_view, 3> kFatal = {"collective library", "GPUs",
                                                             "fabric state"};
  static constexpr std::array<std::string_view, 6> kHarmless = {
      "kernel", "distribution", "memory", "open files", "NUMA nodes", "PyTorch"};
  if (std::find(kFatal.begin(), kFatal.end(), fact) != kFatal.end()) return Severity::kError;
  if (std::find(kHarmless.begin(), kHarmless.end(), fact) != kHarmless.end()) {
    return Severity::kNote;
  }
  return Severity::kWarning;
}

// Facts that no command or file can change.
bool IsHardware(const std::string& fact) {
  return fact == "CPUs" || fact == "GPU models" || fact == "GPU memory";
}

std::string ActionFor(const std::string& fact, const char* otherwise) {
  return IsHardware(fact) ? "place jobs on hosts of one kind, or expect the slowest to set the pace"
                          : otherwise;
}

std::string Names(const std::vector<std::string>& hosts) {
  if (hosts.size() <= kMostNames) return Join(hosts, ", ");
  const std::vector<std::string> first(hosts.begin(), hosts.begin() + kMostNames);
  return Join(first, ", ") + Format(" and {} more", hosts.size() - kMostNames);
}

using Groups = std::map<std::string, std::vector<std::string>>;

std::vector<std::string> GroupLines(const Groups& groups) {
  std::vector<std::pair<std::string, std::vector<std::string>>> sorted(groups.begin(),
                                                                       groups.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  std::vector<std::string> lines;
  for (const auto& [value, hosts] : sorted) {
    lines.push_back(value + ": " + Names(hosts));
  }
  return lines;
}

void CompareOne(const std::string& fact, const Groups& groups, size_t hosts,
                std::vector<Finding>* findings) {
  if (groups.size() == 1) {
    AddFinding(findings, "compare.same", Severity::kFine,
               fact + ": " + groups.begin()->first + " on all " + Count(hosts, "host"));
    return;
  }
  const auto largest = std::max_element(
      groups.begin(), groups.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  if (largest->second.size() * 2 <= hosts) {
    const bool two_halves = groups.size() == 2 && largest->second.size() * 2 == hosts;
    AddFinding(
        findings, "compare.tie", SeverityOf(fact),
        Format("{}: {} values, and {}", fact, groups.size(),
               two_halves ? "as many hosts have the one as the other" : "no majority for any"),
        GroupLines(groups), ActionFor(fact, "make them the same"));
    return;
  }
  for (const auto& [value, odd] : groups) {
    if (value == largest->first) continue;
    AddFinding(
        findings, "compare.odd", SeverityOf(fact),
        Format("{}: {} {} where {} {}", Names(odd), fact, value,
               largest->second.size() == 1 ? "the other has"
                                           : Format("{} others have", largest->second.size()),
               largest->first),
        {largest->first + ": " + Names(largest->second)},
        ActionFor(fact, "make it as on the others"));
  }
}

}  // namespace

std::vector<Finding> CompareHosts(const std::vector<HostFacts>& hosts) {
  std::vector<std::string> order;
  std::set<std::string> known;
  std::vector<std::string> names;
  std::map<std::string, int> used;
  for (const HostFacts& host : hosts) {
    const int times = ++used[host.host];
    names.push_back(times == 1 ? host.host : Format("{} #{}", host.host, times));
    for (const auto& [fact, value] : host.facts) {
      if (known.insert(fact).second) order.push_back(fact);
    }
  }
  std::vector<Finding> findings;
  for (const std::string& fact : order) {
    Groups groups;
    for (size_t i = 0; i < hosts.size(); ++i) {
      std::string value = kNotTold;
      for (const auto& [name, one] : hosts[i].facts) {
        if (name == fact) {
          value = one;
          break;
        }
      }
      groups[value].push_back(names[i]);
    }
    CompareOne(fact, groups, hosts.size(), &findings);
  }
  for (const auto& [name, times] : used) {
    if (times > 1) {
      AddFinding(&findings, "compare.twice", Severity::kNote,
                 Format("{} reports are of hosts that call themselves {}", times, name));
    }
  }
  SortBySeverity(&findings);
  return findings;
}

}  // namespace diapason::doctor
