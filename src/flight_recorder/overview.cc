#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.h"
#include "flight_recorder/diagnose.h"
#include "flight_recorder/progress.h"

namespace diapason::flight_recorder {
namespace {

std::string_view StateName(State state) {
  switch (state) {
    case State::kCompleted:
      return "completed";
    case State::kStarted:
      return "started";
    default:
      return "scheduled";
  }
}

// The line of one rank in one group.
GroupLine LineOf(const JobProgress& job, const RankProgress& rank, uint32_t group) {
  GroupLine line;
  line.group = group;
  line.ranks = {rank.dump->rank};
  const auto found = rank.groups.find(group);
  if (found == rank.groups.end()) return line;
  const Progress& progress = found->second;
  line.entered = progress.entered;
  line.completed = progress.completed;
  line.started = progress.completed;
  if (progress.open != nullptr) {
    const Entry& entry = *progress.open->entry;
    line.first_open = entry.sequence;
    line.open = job.record().CallText(entry) + ", " + std::string(StateName(entry.state));
    line.frame = job.record().frames[entry.frames];
  }
  return line;
}

void CountOps(const RankProgress& rank, std::map<uint32_t, GroupLine>* lines) {
  for (const Op& op : rank.ops) {
    const auto line = lines->find(op.entry->group);
    if (line == lines->end()) continue;
    if (op.entry->p2p) line->second.open_p2p += op.open ? 1 : 0;
    if (!op.entry->p2p && op.entry->state != State::kScheduled) {
      line->second.started = std::max(line->second.started, op.entry->sequence);
    }
  }
}

}  // namespace

std::vector<GroupLine> Overview(const FlightRecord& record, bool all) {
  const JobProgress job(record);
  using Key = std::tuple<uint32_t, int64_t, int64_t, int64_t, uint64_t, std::string>;
  std::map<Key, GroupLine> merged;
  std::map<uint32_t, std::pair<size_t, bool>> groups;  // lines, and whether something is open
  for (const RankProgress& rank : job.ranks()) {
    std::map<uint32_t, GroupLine> lines;
    for (const auto& [group, progress] : rank.groups) lines[group] = LineOf(job, rank, group);
    for (const uint32_t group : rank.dump->groups) {
      if (lines.count(group) == 0) lines[group] = LineOf(job, rank, group);
    }
    CountOps(rank, &lines);
    for (auto& [group, line] : lines) {
      const Key key(group, line.entered, line.started, line.completed, line.open_p2p, line.open);
      groups[group].second |= !line.open.empty() || line.open_p2p > 0;
      const auto [at, added] = merged.emplace(key, line);
      if (added) ++groups[group].first;
      if (!added) at->second.ranks.push_back(line.ranks[0]);
    }
  }
  const bool some = std::any_of(groups.begin(), groups.end(),
                                [](const auto& group) { return group.second.second; });
  std::vector<GroupLine> lines;
  for (auto& [key, line] : merged) {
    std::sort(line.ranks.begin(), line.ranks.end());
    const auto& [count, open] = groups[line.group];
    if (all || !some || open || count > 1) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace diapason::flight_recorder
