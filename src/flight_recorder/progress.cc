#include "flight_recorder/progress.h"

#include <algorithm>
#include <set>

namespace diapason::flight_recorder {

bool WaitsForAll(std::string_view operation) {
  for (const std::string_view rooted :
       {"broadcast", "send", "recv", "coalesced", "_oop", "scatter", "gather"}) {
    if (operation.find(rooted) == std::string_view::npos) continue;
    // These have "gather" and "scatter" in their names, but no root.
    return operation.find("all_gather") != std::string_view::npos ||
           operation.find("allgather") != std::string_view::npos ||
           operation.find("reduce_scatter") != std::string_view::npos;
  }
  return operation != "reduce" && !operation.empty();
}

JobProgress::JobProgress(const FlightRecord& record)
    : record_(record), has_p2p_(record.groups.size(), 0) {
  ranks_.resize(record.dumps.size());
  for (size_t i = 0; i < ranks_.size(); ++i) {
    ranks_[i].dump = &record.dumps[i];
    index_.emplace(record.dumps[i].rank, static_cast<uint32_t>(i));
    for (const Entry& entry : record.dumps[i].entries) {
      if (entry.p2p) has_p2p_[entry.group] = 1;
    }
  }
  FindMembers();
  for (RankProgress& rank : ranks_) {
    ReadOps(&rank);
    ReadProgress(&rank);
  }
  FindStale();
}

uint32_t JobProgress::Index(int64_t rank) const {
  const auto found = index_.find(rank);
  return found == index_.end() ? kNoIndex : found->second;
}

const Progress* JobProgress::Of(uint32_t index, uint32_t group) const {
  const auto found = ranks_[index].groups.find(group);
  return found == ranks_[index].groups.end() ? nullptr : &found->second;
}

std::vector<int64_t> JobProgress::Missing() const {
  std::set<int64_t> missing;
  for (const Group& group : record_.groups) {
    for (const int64_t rank : group.ranks) {
      if (index_.count(rank) == 0) missing.insert(rank);
    }
  }
  return {missing.begin(), missing.end()};
}

void JobProgress::FindMembers() {
  members_.resize(record_.groups.size());
  for (size_t i = 0; i < members_.size(); ++i) members_[i] = record_.groups[i].ranks;
  for (const RankProgress& rank : ranks_) {
    for (const Entry& entry : rank.dump->entries) {
      if (!record_.groups[entry.group].ranks.empty()) continue;
      std::vector<int64_t>& members = members_[entry.group];
      if (members.empty() || members.back() != rank.dump->rank) {
        members.push_back(rank.dump->rank);
      }
    }
  }
  for (std::vector<int64_t>& members : members_) {
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
  }
}

// The numbers in the name of an operation count within the group. Some writers use ranks of the
// job instead: then the own number is not this rank's place in the group.
void JobProgress::ResolvePeers(const RankProgress& rank, Op* op) const {
  const std::vector<int64_t>& members = members_[op->entry->group];
  const int64_t from = op->entry->number_from;
  const int64_t to = op->entry->number_to;
  const int64_t own = op->send ? from : to;
  const auto place = std::lower_bound(members.begin(), members.end(), rank.dump->rank);
  if (place == members.end() || *place != rank.dump->rank) return;
  const auto size = static_cast<int64_t>(members.size());
  if (own == place - members.begin() && from < size && to < size) {
    op->from = members[static_cast<size_t>(from)];
    op->to = members[static_cast<size_t>(to)];
  } else if (own == rank.dump->rank) {
    op->from = from;
    op->to = to;
  }
}

void JobProgress::ReadOps(RankProgress* rank) {
  const std::vector<Entry>& entries = rank->dump->entries;
  rank->ops.reserve(entries.size());
  // Where in `ops` the operations of the last sequence number of a group begin, for batches.
  struct Batch {
    int64_t sequence = -1;
    size_t first = 0;
  };
  std::unordered_map<uint64_t, Batch> batches;
  for (const Entry& entry : entries) {
    const std::string& operation = record_.Operation(entry);
    const int64_t sequence = entry.p2p ? entry.p2p_sequence : entry.sequence;
    Batch& batch = batches[uint64_t{entry.group} * 2 + (entry.p2p ? 1 : 0)];
    if (batch.sequence != sequence) batch = {sequence, rank->ops.size()};
    Op op;
    op.entry = &entry;
    op.position = entry.record;
    op.open = entry.state != State::kCompleted;
    op.send = operation == "send";
    if (operation == "coalesced") {
      bool any = false;
      for (size_t i = batch.first; i < rank->ops.size(); ++i) {
        Op& member = rank->ops[i];
        if (member.entry->group != entry.group || member.entry->p2p != entry.p2p) continue;
        any = true;
        member.open = op.open;
        member.position = entry.record;
      }
      if (any || entry.p2p) continue;
    }
    if (entry.p2p) {
      ResolvePeers(*rank, &op);
      if (op.from < 0) continue;
    }
    rank->ops.push_back(op);
  }
}

void JobProgress::ReadProgress(RankProgress* rank) {
  for (const Op& op : rank->ops) {
    Progress& progress = rank->groups[op.entry->group];
    // A send or receive carries the number of the last collective.
    progress.entered = std::max(progress.entered, op.entry->sequence);
    if (op.entry->p2p || op.entry->sequence < 0) continue;
    if (op.open || op.entry->sequence < progress.completed) continue;
    progress.completed = op.entry->sequence;
    progress.last_done = &op;
  }
  for (const GroupStatus& status : rank->dump->status) {
    // Sends and receives count there as well.
    if (has_p2p_[status.group] != 0) continue;
    Progress& progress = rank->groups[status.group];
    progress.entered = std::max(progress.entered, status.enqueued);
    progress.completed = std::max(progress.completed, status.completed);
  }
  for (Op& op : rank->ops) {
    if (op.entry->p2p || op.entry->sequence < 0) continue;
    Progress& progress = rank->groups[op.entry->group];
    // The collectives of a group run one after the other.
    if (op.entry->sequence <= progress.completed) op.open = false;
    if (!op.open) continue;
    if (progress.open == nullptr || op.entry->sequence < progress.first_open) {
      progress.first_open = op.entry->sequence;
      progress.open = &op;
    }
  }
  for (auto& [group, progress] : rank->groups) {
    const int64_t before = progress.open != nullptr ? progress.first_open - 1 : progress.entered;
    progress.completed = std::max(progress.completed, before);
  }
}

// Whether the rank has an entry of this completed collective, and it needs all members.
bool JobProgress::CompletedByAll(uint32_t index, uint32_t group, int64_t sequence) const {
  const Progress* progress = Of(index, group);
  if (progress == nullptr || progress->last_done == nullptr) return false;
  const Entry& entry = *progress->last_done->entry;
  return entry.sequence == sequence && WaitsForAll(record_.Operation(entry));
}

void JobProgress::FindStale() {
  // The rank of each group that is furthest.
  std::vector<std::pair<int64_t, uint32_t>> furthest(members_.size(), {-1, kNoIndex});
  for (size_t i = 0; i < ranks_.size(); ++i) {
    for (const auto& [group, progress] : ranks_[i].groups) {
      if (progress.completed > furthest[group].first) {
        furthest[group] = {progress.completed, static_cast<uint32_t>(i)};
      }
    }
  }
  for (size_t group = 0; group < members_.size(); ++group) {
    const auto [sequence, first] = furthest[group];
    if (first == kNoIndex || !CompletedByAll(first, static_cast<uint32_t>(group), sequence))
      continue;
    for (const int64_t member : members_[group]) {
      const uint32_t index = Index(member);
      if (index == kNoIndex) continue;
      const Progress* progress = Of(index, static_cast<uint32_t>(group));
      if (progress == nullptr || progress->entered < sequence) ranks_[index].older = true;
    }
  }
  for (RankProgress& rank : ranks_) {
    for (const Op& op : rank.ops) {
      if (!op.open || op.entry->p2p || op.entry->sequence < 0) continue;
      if (op.entry->sequence > furthest[op.entry->group].first) continue;
      if (!WaitsForAll(record_.Operation(*op.entry))) continue;
      rank.stale.push_back(&op);
      rank.done = std::max(rank.done, op.position);
    }
  }
}

}  // namespace diapason::flight_recorder
