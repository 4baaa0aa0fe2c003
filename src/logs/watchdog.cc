#include "logs/watchdog.h"

#include "logs/cursor.h"

namespace diapason::logs {
namespace {

// "[Rank 3]", "[PG 1 Rank 3]", "[PG ID 0 PG GUID 0(default_pg) Rank 1]".
bool RankOf(std::string_view line, std::string_view* group, int64_t* rank) {
  *group = {};
  Cursor cursor(line);
  if (cursor.SkipTo("[PG ")) {
    std::string_view inside;
    if (!cursor.Until("]", &inside)) return false;
    const size_t at = inside.rfind("Rank ");
    if (at == std::string_view::npos) return false;
    Cursor number(inside.substr(at + 5));
    std::string_view name = inside.substr(0, at);
    const size_t guid = name.rfind("GUID ");
    if (guid != std::string_view::npos) name = name.substr(guid + 5);
    while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
    *group = name;
    return number.Number(rank);
  }
  Cursor plain(line);
  return plain.SkipTo("[Rank ") && plain.Number(rank);
}

}  // namespace

WatchdogRank* WatchdogReport::Find(std::string_view group, int64_t rank) {
  // In some versions the time-out line names no group; the summary line does.
  std::vector<uint32_t>& same = by_rank_[rank];
  for (const uint32_t index : same) {
    WatchdogRank& known = ranks[index];
    if (known.group == group || known.group.empty() || group.empty()) {
      if (known.group.empty()) known.group = std::string(group.substr(0, 64));
      return &known;
    }
  }
  if (ranks.size() >= kMost) {
    if (same.empty()) by_rank_.erase(rank);
    return nullptr;
  }
  same.push_back(static_cast<uint32_t>(ranks.size()));
  ranks.emplace_back();
  ranks.back().group = std::string(group.substr(0, 64));
  ranks.back().rank = rank;
  return &ranks.back();
}

bool WatchdogReport::Line(const Spot& spot, std::string_view line) {
  std::string_view group;
  int64_t rank = -1;
  Cursor cursor(line);
  if (cursor.SkipTo("Watchdog caught collective operation timeout: ")) {
    if (!RankOf(line, &group, &rank)) return false;
    // Versions before 2.0 do not number them.
    int64_t sequence = 0;
    if (cursor.SkipTo("SeqNum=") && !cursor.Number(&sequence)) return false;
    WatchdogRank* known = Find(group, rank);
    if (known == nullptr || (known->sequence >= 0 && known->sequence <= sequence)) return true;
    known->sequence = sequence;
    std::string_view operation;
    if (cursor.SkipTo("OpType=") && cursor.Until(",", &operation)) {
      known->operation = std::string(operation.substr(0, 40));
    }
    known->elements = -1;
    Cursor rest = cursor;
    if (rest.SkipTo("NumelIn=")) rest.Number(&known->elements);
    if (cursor.SkipTo("ran for ")) cursor.Number(&known->milliseconds);
    known->place = MakePlace(spot, line);
    return true;
  }
  cursor = Cursor(line);
  if (!cursor.SkipTo("last enqueued ")) return false;
  if (!cursor.Skip("work: ") && !cursor.Skip("NCCL work: ")) return false;
  int64_t enqueued = -2;
  int64_t completed = -2;
  if (!cursor.Number(&enqueued) || !cursor.SkipTo("work: ") || !cursor.Number(&completed)) {
    return false;
  }
  if (!RankOf(line, &group, &rank)) return false;
  WatchdogRank* known = Find(group, rank);
  if (known == nullptr) return true;
  known->last_enqueued = enqueued;
  known->last_completed = completed;
  known->status = MakePlace(spot, line);
  return true;
}

}  // namespace diapason::logs
