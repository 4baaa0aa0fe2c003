// Connections between ranks, choices, and calls of collectives.
#include <algorithm>

#include "logs/collect.h"
#include "logs/cursor.h"

namespace diapason::logs {
namespace {

constexpr size_t kSlots = 65536;
constexpr size_t kMostDisagreements = 64;
// The library's numbers, for versions that print no names (2.19 to 2.23).
constexpr std::string_view kAlgorithms[] = {
    "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
constexpr std::string_view kProtocols[] = {"LL", "LL128", "SIMPLE"};

}  // namespace

bool Collector::Channel(std::string_view line, std::string_view message, uint32_t process) {
  Cursor cursor(message);
  int64_t channel = 0;
  int64_t of = 0;
  cursor.Skip("Channel ");
  if (!cursor.Number(&channel)) return false;
  if (cursor.Skip("/")) cursor.Number(&of);
  if (!cursor.Skip(" :")) return false;
  cursor.Blanks();
  CommRank* member = Current(process);
  int64_t from = 0;
  if (!cursor.Number(&from)) return false;
  if (!cursor.Skip("[")) {
    // "Channel 00/24 : 0 1 2 3": a ring, as its first rank prints it.
    if (member == nullptr) return true;
    LoggedComm& communicator = facts_->communicators[member->communicator];
    communicator.rings = std::max(communicator.rings, std::max(of, channel + 1));
    if (communicator.first_ring.empty()) {
      const size_t colon = message.find(": ");
      communicator.first_ring = std::string(message.substr(colon + 2, 120));
      while (communicator.first_ring.ends_with(' ')) communicator.first_ring.pop_back();
    }
    return true;
  }
  // "Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA"
  int64_t to = 0;
  if (!cursor.SkipTo("] -> ") || !cursor.Number(&to) || !cursor.SkipTo("]")) return false;
  const bool receive = cursor.rest().starts_with(" [receive]");
  if (!cursor.SkipTo(" via ")) return false;
  std::string_view way = cursor.Word();
  if (way.empty() || way.size() > 60 || from < 0 || to < 0 || from > INT32_MAX || to > INT32_MAX) {
    return true;
  }
  if (way == "P2P/direct") cursor.Skip(" pointer");
  if (way.starts_with("NET/") && !way.starts_with("NET/Socket")) {
    LogFacts::GdrUse& use = facts_->gdr_by_host[facts_->processes[process].host];
    const bool direct = way.find("GDRDMA") != std::string_view::npos;
    if (!direct && use.staged == 0) use.first_staged = MakePlace(spot_, line);
    ++(direct ? use.direct : use.staged);
  }
  // RCCL prints the communicator.
  uint64_t pointer = 0;
  int64_t ranks = 0;
  if (cursor.SkipTo("comm 0x") && cursor.Hex(&pointer) && cursor.SkipTo("nRanks ") &&
      cursor.Number(&ranks) && ranks > 0) {
    const uint32_t index = MemberOf(process, pointer, ranks);
    if (index != UINT32_MAX) {
      member = &facts_->members[index];
      if (member->rank < 0) member->rank = static_cast<int32_t>(receive ? to : from);
    }
  }
  if (member == nullptr) return true;
  member->used = true;
  const uint32_t id = facts_->ways.Id(way);
  const uint64_t key = Mix(
      Mix(member->communicator, static_cast<uint64_t>(from) << 32 ^ static_cast<uint64_t>(to)), id);
  const auto found = links_.find(key);
  uint32_t index = 0;
  if (found != links_.end()) {
    index = found->second;
  } else {
    if (facts_->links.size() >= kMostLinks || id == kNoName) {
      ++facts_->links_left_out;
      return true;
    }
    index = static_cast<uint32_t>(facts_->links.size());
    links_.emplace(key, index);
    facts_->links.push_back({member->communicator, static_cast<int32_t>(from),
                             static_cast<int32_t>(to), id, 0, 0, spot_});
  }
  ++(receive ? facts_->links[index].receives : facts_->links[index].sends);
  return true;
}

bool Collector::Trees(std::string_view message, uint32_t process) {
  if (CommRank* member = Current(process)) {
    std::string& tree = facts_->communicators[member->communicator].first_tree;
    if (tree.empty()) {
      // "Trees [0] 1/-1/-1->0->-1 [1] ...": the first is enough.
      const size_t second = message.find(" [1] ");
      tree = std::string(message.substr(6, std::min<size_t>(second, 80) - 6));
    }
  }
  return true;
}

bool Collector::Channels(std::string_view message, uint32_t process) {
  // "24 coll channels, 24 collnet channels, 16 nvls channels, 32 p2p channels, 32 p2p channels ..."
  Cursor cursor(message);
  int64_t channels = 0;
  if (!cursor.Number(&channels) || !cursor.Skip(" coll channels")) return false;
  CommRank* member = Current(process);
  if (member == nullptr) return true;
  LoggedComm& communicator = facts_->communicators[member->communicator];
  communicator.coll_channels = channels;
  while (cursor.Skip(", ")) {
    int64_t number = 0;
    if (!cursor.Number(&number)) break;
    if (cursor.Skip(" nvls channels")) communicator.nvls_channels = number;
    if (cursor.rest().starts_with(" p2p channels,")) communicator.p2p_channels = number;
    const size_t comma = cursor.rest().find(',');
    if (comma == std::string_view::npos) break;
    cursor = Cursor(cursor.rest().substr(comma));
  }
  return true;
}

void Collector::Choose(std::string_view collective, uint64_t bytes, std::string_view algorithm,
                       std::string_view protocol, int64_t channels) {
  const std::string_view words[3] = {collective, algorithm, protocol};
  for (int i = 0; i < 3; ++i) {
    if (last_words_[i] == words[i] && last_ids_[i] != kNoName) continue;
    last_words_[i] = words[i];
    last_ids_[i] = facts_->words.Id(words[i]);
  }
  LoggedChoice choice;
  choice.collective = last_ids_[0];
  choice.algorithm = last_ids_[1];
  choice.protocol = last_ids_[2];
  choice.channels = static_cast<int32_t>(channels);
  const uint64_t key =
      Mix(Mix(choice.collective, choice.algorithm),
          static_cast<uint64_t>(choice.protocol) << 32 ^ static_cast<uint64_t>(channels + 1));
  const auto found = choices_.find(key);
  uint32_t index = 0;
  if (found != choices_.end()) {
    index = found->second;
  } else {
    if (facts_->choices.size() >= kMostChoices) {
      ++facts_->choices_left_out;
      return;
    }
    index = static_cast<uint32_t>(facts_->choices.size());
    choices_.emplace(key, index);
    choice.first = spot_;
    facts_->choices.push_back(choice);
  }
  LoggedChoice& known = facts_->choices[index];
  known.smallest = std::min(known.smallest, bytes);
  known.largest = std::max(known.largest, bytes);
  ++known.times;
}

bool Collector::Tuning(std::string_view message) {
  // "AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}", and before 2.24
  // "AllReduce: 1024 Bytes -> Algo 1 proto 0 time 12.3", before 2.23 without the name.
  Cursor cursor(message);
  std::string_view collective = "?";
  const size_t colon = message.substr(0, 24).find(": ");
  if (colon != std::string_view::npos) {
    collective = message.substr(0, colon);
    cursor = Cursor(message.substr(colon + 2));
  }
  int64_t bytes = 0;
  if (!cursor.Number(&bytes) || bytes < 0 || !cursor.Skip(" Bytes -> Algo ")) return false;
  std::string_view algorithm = cursor.Word();
  if (!cursor.Skip(" proto ")) return false;
  std::string_view protocol = cursor.Word();
  if (algorithm.size() > 20 || protocol.size() > 10 || algorithm.empty() || protocol.empty()) {
    return false;
  }
  int64_t number = 0;
  Cursor first(algorithm);
  if (first.Number(&number) && first.AtEnd()) {
    if (number < 0 || number >= static_cast<int64_t>(std::size(kAlgorithms))) return false;
    algorithm = kAlgorithms[number];
  }
  Cursor second(protocol);
  if (second.Number(&number) && second.AtEnd()) {
    if (number < 0 || number >= static_cast<int64_t>(std::size(kProtocols))) return false;
    protocol = kProtocols[number];
  }
  int64_t low = 0;
  int64_t high = 0;
  int64_t channels = -1;
  if (cursor.Skip(" channel{Lo..Hi}={") && cursor.Number(&low) && cursor.Skip("..") &&
      cursor.Number(&high) && cursor.Skip("}") && high >= low && low >= 0 && high < 1024) {
    channels = high - low + 1;
  } else if (message.find("channel{") != std::string_view::npos) {
    ++facts_->damaged;
    return true;
  }
  Choose(collective, static_cast<uint64_t>(bytes), algorithm, protocol, channels);
  return true;
}

void Collector::CountCall(uint32_t collective, std::string_view name, uint64_t elements,
                          int64_t type, int64_t ranks) {
  // By ncclDataType_t; newer types are skipped rather than guessed.
  constexpr uint64_t kWidths[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  if (type < 0 || type >= static_cast<int64_t>(std::size(kWidths)) || collective == kNoName) return;
  const bool parts = name == "AllGather" || name == "ReduceScatter" || name == "AlltoAll";
  const uint64_t width = kWidths[type] * (parts ? static_cast<uint64_t>(ranks) : 1);
  if (elements == 0 || elements > (uint64_t{1} << 50) / width) return;
  const uint64_t bytes = elements * width;
  const auto found = call_kinds_.find(Mix(collective, bytes));
  if (found != call_kinds_.end()) {
    ++facts_->call_kinds[found->second].times;
    return;
  }
  if (facts_->call_kinds.size() >= kMostCallKinds) {
    ++facts_->call_kinds_left_out;
    return;
  }
  call_kinds_.emplace(Mix(collective, bytes), static_cast<uint32_t>(facts_->call_kinds.size()));
  facts_->call_kinds.push_back({collective, bytes, 1});
}

bool Collector::Operation(std::string_view line, std::string_view message, uint32_t process) {
  // "AllReduce: opCount 1f sendbuff 0x7f recvbuff 0x7f count 1024 datatype 7 op 0 root 0 comm 0x55
  // [nranks=8] stream 0x56"
  Cursor cursor(message);
  std::string_view collective;
  std::string_view ignored;
  uint64_t op_count = 0;
  uint64_t pointer = 0;
  int64_t count = 0;
  int64_t type = 0;
  int64_t reduction = 0;
  int64_t root = 0;
  int64_t ranks = 0;
  const bool whole = cursor.Until(": opCount ", &collective) && cursor.Hex(&op_count) &&
                     cursor.Until(" count ", &ignored) && cursor.Number(&count) &&
                     cursor.Skip(" datatype ") && cursor.Number(&type) && cursor.Skip(" op ") &&
                     cursor.Number(&reduction) && cursor.Skip(" root ") && cursor.Number(&root) &&
                     cursor.Skip(" comm 0x") && cursor.Hex(&pointer) && cursor.Skip(" [nranks=") &&
                     cursor.Number(&ranks) && cursor.Skip("]");
  if (!whole || ranks <= 0 || ranks > INT32_MAX || count < 0) {
    ++facts_->damaged;
    return true;
  }
  const uint32_t index = MemberOf(process, pointer, ranks);
  if (index == UINT32_MAX) return true;
  CommRank& member = facts_->members[index];
  if (member.rank < 0 && cursor.SkipTo("globalrank ")) {
    int64_t rank = 0;
    if (cursor.Number(&rank) && rank >= 0 && rank < ranks) {
      member.rank = static_cast<int32_t>(rank);
    }
  }
  const bool same = member.operations > 0 && member.op_count == op_count;
  member.used = true;
  ++member.operations;
  member.op_index = same ? member.op_index + 1 : 0;
  member.op_count = op_count;
  if (facts_->words[member.collective] != collective) {
    member.collective = facts_->words.Id(collective);
  }
  member.elements = static_cast<uint64_t>(count);
  member.last = spot_;
  CountCall(member.collective, collective, member.elements, type, ranks);
  // Sends and receives differ between ranks, and so do the sizes of uneven collectives.
  if (collective == "Send" || collective == "Recv") {
    facts_->communicators[member.communicator].point_to_point = true;
    return true;
  }
  if (collective.ends_with("v")) return true;
  uint64_t signature = Mix(member.collective, static_cast<uint64_t>(count));
  signature = Mix(signature, static_cast<uint64_t>(type) << 32 ^ static_cast<uint64_t>(root));
  Compare(index, Mix(signature, static_cast<uint64_t>(reduction)), line);
  return true;
}

void Collector::Compare(uint32_t index, uint64_t signature, std::string_view line) {
  const CommRank& member = facts_->members[index];
  // Without an id two communicators of the same size cannot be distinguished.
  if (facts_->communicators[member.communicator].id == 0) return;
  if (slots_.empty()) slots_.resize(kSlots);
  const uint64_t key = Mix(Mix(member.communicator, member.op_count), member.op_index);
  Slot& slot = slots_[key % kSlots];
  if (slot.communicator != member.communicator || slot.key != key) {
    // Hangs are at the end: later operations replace earlier ones.
    if (slot.communicator == member.communicator && slot.op_count > member.op_count) return;
    slot = {key, member.op_count, signature, member.communicator, index, spot_};
    return;
  }
  if (slot.signature == signature || slot.member == index) return;
  if (facts_->disagreements.size() >= kMostDisagreements) return;
  Disagreement difference;
  difference.communicator = member.communicator;
  difference.op_count = member.op_count;
  difference.ranks[0] = facts_->members[slot.member].rank;
  difference.ranks[1] = member.rank;
  difference.places[0] = {slot.spot.file, slot.spot.line,
                          facts_->ProcessText(facts_->members[slot.member].process)};
  difference.places[1] = MakePlace(spot_, line);
  facts_->disagreements.push_back(std::move(difference));
}

}  // namespace diapason::logs
