#include "process/sessions.h"

#include <signal.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/root_fs.h"
#include "base/text.h"

namespace diapason::process {

std::optional<ProcessStat> ParseStat(std::string_view text) {
  const size_t open = text.find('(');
  // The name may contain parentheses: the last one ends it.
  const size_t close = text.rfind(')');
  if (close == std::string_view::npos || close < open) return std::nullopt;
  ProcessStat stat;
  stat.name = std::string(text.substr(open + 1, close - open - 1));
  const std::vector<std::string_view> fields = Split(Trim(text.substr(close + 1)), ' ');
  if (fields.size() < 22 || fields[0].empty()) return std::nullopt;
  stat.state = fields[0][0];
  for (size_t i = 1; i < fields.size(); ++i) {
    uint64_t number = 0;
    stat.numbers.push_back(ParseUnsigned(fields[i], &number) ? number : 0);
  }
  return stat;
}

namespace {

// Every process there is.
std::vector<Descendant> AllProcesses() {
  constexpr size_t kParent = 4;
  constexpr size_t kGroup = 5;
  constexpr size_t kSession = 6;
  constexpr size_t kThreads = 20;
  const RootFs tree;
  std::vector<Descendant> all;
  for (const std::string& name : tree.List("/proc")) {
    uint64_t pid = 0;
    if (!ParseUnsigned(name, &pid)) continue;
    const std::optional<ProcessStat> stat =
        ParseStat(tree.Read("/proc/" + name + "/stat").value_or(""));
    if (!stat) continue;
    // A process whose first thread has ended looks like a zombie while its others run.
    const bool ended = stat->state == 'Z' || stat->state == 'X';
    all.push_back({static_cast<pid_t>(pid), static_cast<pid_t>(stat->Number(kParent)),
                   static_cast<pid_t>(stat->Number(kGroup)),
                   static_cast<pid_t>(stat->Number(kSession)),
                   ended && stat->Number(kThreads) <= 1});
  }
  return all;
}

}  // namespace

std::vector<SessionProcess> MembersOf(const std::vector<pid_t>& sessions) {
  std::vector<SessionProcess> members;
  for (const Descendant& one : AllProcesses()) {
    if (!one.ended && std::binary_search(sessions.begin(), sessions.end(), one.session)) {
      members.push_back({one.pid, one.group});
    }
  }
  return members;
}

std::vector<Descendant> DescendantsOf(pid_t root, pid_t except) {
  std::multimap<pid_t, Descendant> by_parent;
  for (const Descendant& one : AllProcesses()) by_parent.emplace(one.parent, one);
  std::vector<Descendant> found;
  std::vector<pid_t> open = {root};
  std::set<pid_t> seen = {root, except};  // /proc is no snapshot: an id may be there twice
  while (!open.empty()) {
    const auto [begin, end] = by_parent.equal_range(open.back());
    open.pop_back();
    for (auto child = begin; child != end; ++child) {
      if (!seen.insert(child->second.pid).second) continue;
      found.push_back(child->second);
      open.push_back(child->second.pid);
    }
  }
  return found;
}

size_t SignalSessions(const std::vector<pid_t>& sessions, int signal) {
  const std::vector<SessionProcess> members = MembersOf(sessions);
  // The sessions' first groups need no /proc, and so are reached without one too.
  std::set<pid_t> groups(sessions.begin(), sessions.end());
  for (const SessionProcess& member : members) groups.insert(member.group);
  for (const pid_t group : groups) {
    if (group > 1) (void)::kill(-group, signal);
  }
  return members.size();
}

}  // namespace diapason::process
