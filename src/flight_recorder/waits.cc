#include "flight_recorder/waits.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace diapason::flight_recorder {
namespace {

// Members that are looked at, of all operations together. Jobs of thousands of ranks stay far
// below; hostile dumps do not take longer than this.
constexpr size_t kMostSteps = 64 << 20;
constexpr size_t kMostCrossings = 16;

bool FromTheStart(const Dump& dump) {
  return !dump.entries.empty() && dump.entries.front().record == 0;
}

std::vector<const Op*> OpenOnes(const std::vector<const Op*>& ops) {
  std::vector<const Op*> open;
  for (const Op* op : ops) {
    if (op->open) open.push_back(op);
  }
  return open;
}

}  // namespace

WaitGraph::WaitGraph(const JobProgress& job)
    : job_(job), waits_in_(job.ranks().size()), wait_for_(job.ranks().size()) {
  AddCollectives();
  for (Node& node : nodes_) Complete(&node);
  AddChannels();
  for (std::vector<Place>& places : waits_in_) {
    std::stable_sort(places.begin(), places.end(),
                     [](const Place& a, const Place& b) { return a.position < b.position; });
  }
  FindQueued();
  FindCrossings();
  Link();
}

void WaitGraph::Wait(uint32_t rank, const Op& op, uint32_t node) {
  nodes_[node].waiting.push_back(rank);
  if (nodes_[node].op == nullptr) nodes_[node].op = &op;
  waits_in_[rank].push_back({node, op.position});
}

void WaitGraph::AddCollectives() {
  std::map<std::pair<uint32_t, int64_t>, uint32_t> known;
  for (uint32_t rank = 0; rank < job_.ranks().size(); ++rank) {
    for (const Op& op : job_.rank(rank).ops) {
      if (op.entry->p2p || op.entry->sequence < 0 || !job_.rank(rank).Live(op)) continue;
      const auto [at, added] = known.emplace(std::pair(op.entry->group, op.entry->sequence),
                                             static_cast<uint32_t>(nodes_.size()));
      if (added) {
        nodes_.emplace_back();
        nodes_.back().group = op.entry->group;
        nodes_.back().sequence = op.entry->sequence;
      }
      // The operations of a batch count once.
      const std::vector<uint32_t>& waiting = nodes_[at->second].waiting;
      if (waiting.empty() || waiting.back() != rank) Wait(rank, op, at->second);
    }
  }
}

// Whether a rank without any entry of a group may be past this collective of it: its dump has the
// status of groups that it does not name. One that is exactly before the collective is of this
// group.
bool WaitGraph::MayHaveEntered(const Dump& dump, const Node& node) const {
  bool may = false;
  for (const GroupStatus& status : dump.unknown_status) {
    if (status.enqueued == node.sequence - 1) return false;
    may = may || status.enqueued >= node.sequence;
  }
  return may;
}

// Notes that `rank` has not entered the operation.
void WaitGraph::AddMissing(int64_t rank, Node* node) const {
  const uint32_t index = job_.Index(rank);
  if (index == kNoIndex) {
    node->no_dump.push_back(rank);
  } else if (job_.rank(index).Certain() &&
             (node->from >= 0 || job_.Of(index, node->group) != nullptr ||
              !MayHaveEntered(*job_.rank(index).dump, *node))) {
    node->absent.push_back(index);
  } else {
    node->unknown.push_back(index);
  }
}

void WaitGraph::Complete(Node* node) {
  const std::vector<int64_t>& members = job_.Members(node->group);
  steps_ += members.size();
  if (steps_ > kMostSteps) return;
  for (const int64_t member : members) {
    const uint32_t index = job_.Index(member);
    const Progress* progress = index == kNoIndex ? nullptr : job_.Of(index, node->group);
    if (progress == nullptr || progress->entered < node->sequence) AddMissing(member, node);
  }
}

// The recorder numbers sends and receives on each rank by itself: they belong together by their
// order between two ranks. If a dump has lost its oldest entries, the first that is open on one
// side belongs to the first on the other.
void WaitGraph::AddChannels() {
  std::map<std::tuple<uint32_t, int64_t, int64_t>, Channel> channels;
  for (const RankProgress& rank : job_.ranks()) {
    for (const Op& op : rank.ops) {
      if (!op.entry->p2p) continue;
      Channel& channel = channels[{op.entry->group, op.from, op.to}];
      channel.group = op.entry->group;
      (op.send ? channel.sends : channel.receives).push_back(&op);
    }
  }
  for (auto& [key, channel] : channels) {
    const int64_t from = std::get<1>(key);
    const int64_t to = std::get<2>(key);
    const uint32_t sender = job_.Index(from);
    const uint32_t receiver = job_.Index(to);
    const bool all = sender != kNoIndex && receiver != kNoIndex &&
                     FromTheStart(*job_.rank(sender).dump) &&
                     FromTheStart(*job_.rank(receiver).dump);
    if (!all) {
      channel.sends = OpenOnes(channel.sends);
      channel.receives = OpenOnes(channel.receives);
    }
    const size_t count = std::max(channel.sends.size(), channel.receives.size());
    for (size_t i = 0; i < count; ++i) {
      AddPair(from, to, channel, i < channel.sends.size() ? channel.sends[i] : nullptr,
              i < channel.receives.size() ? channel.receives[i] : nullptr);
    }
  }
}

void WaitGraph::AddPair(int64_t from, int64_t to, const Channel& channel, const Op* send,
                        const Op* receive) {
  const uint32_t sender = job_.Index(from);
  const uint32_t receiver = job_.Index(to);
  const bool send_waits = send != nullptr && job_.rank(sender).Live(*send);
  const bool receive_waits = receive != nullptr && job_.rank(receiver).Live(*receive);
  if (!send_waits && !receive_waits) return;
  const auto id = static_cast<uint32_t>(nodes_.size());
  nodes_.emplace_back();
  nodes_[id].group = channel.group;
  nodes_[id].from = from;
  nodes_[id].to = to;
  if (send_waits) Wait(sender, *send, id);
  if (receive_waits) Wait(receiver, *receive, id);
  if (send == nullptr) AddMissing(from, &nodes_[id]);
  if (receive == nullptr) AddMissing(to, &nodes_[id]);
  if (!send_waits || !receive_waits || !PairDiffers(job_, *send, *receive)) return;
  Mismatch found;
  found.kind = Mismatch::Kind::kPair;
  found.group = channel.group;
  found.open = true;
  found.tie = true;
  found.variants.push_back({{sender}, send->entry, job_.record().CallText(*send->entry)});
  found.variants.push_back({{receiver}, receive->entry, job_.record().CallText(*receive->entry)});
  pair_mismatches_.push_back(std::move(found));
}

// A collective behind another one on the same rank does not run before that is done. Sends and
// receives may run beside them.
void WaitGraph::FindQueued() {
  for (uint32_t rank = 0; rank < waits_in_.size(); ++rank) {
    int64_t first = -1;
    for (const Place& place : waits_in_[rank]) {
      Node& node = nodes_[place.node];
      const bool collective = node.from < 0;
      if (collective && first < 0) first = place.position;
      if (collective && place.position > first) {
        node.queued.push_back(rank);
      } else if (place.position > waits_in_[rank].front().position) {
        node.later.push_back(rank);
      }
    }
  }
}

void WaitGraph::FindCrossings() {
  for (uint32_t id = 0; id < nodes_.size(); ++id) {
    const Node& node = nodes_[id];
    if (node.from < 0 || node.waiting.size() != 2) continue;
    const uint32_t a = node.waiting[0];
    const uint32_t b = node.waiting[1];
    steps_ += waits_in_[a].size() + waits_in_[b].size();
    if (steps_ > kMostSteps || crossings_.size() >= kMostCrossings) return;
    std::unordered_map<uint32_t, int64_t> on_b;
    for (const Place& place : waits_in_[b]) on_b.emplace(place.node, place.position);
    int64_t own_a = 0;
    for (const Place& place : waits_in_[a]) {
      if (place.node == id) own_a = place.position;
    }
    const int64_t own_b = on_b[id];
    for (const Place& place : waits_in_[a]) {
      const auto other = on_b.find(place.node);
      if (place.node == id || other == on_b.end()) continue;
      // Only one of the two directions: the pair is found again from the other operation.
      if (place.position <= own_a || other->second >= own_b) continue;
      crossings_.push_back({{a, b}, {id, place.node}});
      break;
    }
  }
}

void WaitGraph::Link() {
  for (uint32_t id = 0; id < nodes_.size(); ++id) {
    for (const uint32_t rank : nodes_[id].absent) wait_for_[rank].push_back(id);
    for (const uint32_t rank : nodes_[id].queued) wait_for_[rank].push_back(id);
    for (const uint32_t rank : nodes_[id].later) wait_for_[rank].push_back(id);
    for (const uint32_t rank : nodes_[id].unknown) wait_for_[rank].push_back(id);
  }
}

std::vector<char> WaitGraph::Reach(const std::vector<uint32_t>& ranks) const {
  std::vector<char> reached(waits_in_.size(), 0);
  std::vector<char> seen(nodes_.size(), 0);
  std::vector<uint32_t> next = ranks;
  for (const uint32_t rank : ranks) reached[rank] = 1;
  while (!next.empty()) {
    const uint32_t rank = next.back();
    next.pop_back();
    for (const uint32_t id : wait_for_[rank]) {
      if (seen[id] != 0) continue;
      seen[id] = 1;
      for (const uint32_t waiting : nodes_[id].waiting) {
        if (reached[waiting] != 0) continue;
        reached[waiting] = 1;
        next.push_back(waiting);
      }
    }
  }
  return reached;
}

}  // namespace diapason::flight_recorder
