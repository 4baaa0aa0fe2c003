// Initialisation: "... comm 0x55 rank 1 nranks 2 cudaDev 1 nvmlDev 1 busId 44000 commId 0x33 - Init
// START", and its results.
#include <algorithm>

#include "logs/collect.h"
#include "logs/cursor.h"

namespace diapason::logs {

CommRank* Collector::Current(uint32_t process) {
  const uint32_t member = facts_->processes[process].member;
  return member < facts_->members.size() ? &facts_->members[member] : nullptr;
}

uint32_t Collector::CommunicatorOf(uint64_t id, int64_t ranks, std::string_view line) {
  const uint64_t key = id != 0 ? id : Mix(1, static_cast<uint64_t>(ranks));
  const auto found = communicators_.find(key);
  if (found != communicators_.end()) {
    LoggedComm& known = facts_->communicators[found->second];
    if (known.ranks != ranks && known.other_ranks == 0 && !line.empty()) {
      known.other_ranks = ranks;
      known.disagreement = MakePlace(spot_, line);
    }
    return found->second;
  }
  if (facts_->communicators.size() >= kMostCommunicators) return UINT32_MAX;
  const auto index = static_cast<uint32_t>(facts_->communicators.size());
  communicators_.emplace(key, index);
  facts_->communicators.emplace_back();
  LoggedComm& communicator = facts_->communicators.back();
  communicator.id = id;
  communicator.ranks = ranks;
  if (!line.empty()) communicator.first = MakePlace(spot_, line);
  return index;
}

uint32_t Collector::NewMember(uint32_t process, uint64_t pointer, uint32_t communicator) {
  if (communicator == UINT32_MAX || facts_->members.size() >= kMostMembers) {
    ++facts_->members_left_out;
    return UINT32_MAX;
  }
  const auto index = static_cast<uint32_t>(facts_->members.size());
  facts_->members.emplace_back();
  CommRank& member = facts_->members.back();
  member.communicator = communicator;
  member.process = process;
  member.pointer = pointer;
  members_[Mix(process, pointer)] = index;
  return index;
}

// The member that a process calls `pointer`; a new one of an unknown communicator if its start is
// not in the log.
uint32_t Collector::MemberOf(uint32_t process, uint64_t pointer, int64_t ranks) {
  const auto found = members_.find(Mix(process, pointer));
  if (found != members_.end()) return found->second;
  return NewMember(process, pointer, CommunicatorOf(0, ranks, {}));
}

std::optional<Collector::InitStep> Collector::StepOf(std::string_view message) {
  if (message.ends_with("- Init START")) return InitStep::kStart;
  if (message.ends_with("- Init COMPLETE")) return InitStep::kComplete;
  if (message.ends_with("- Destroy COMPLETE") || message.ends_with("- Abort COMPLETE")) {
    return InitStep::kEnd;
  }
  return std::nullopt;
}

bool Collector::Initialisation(std::string_view line, std::string_view message, uint32_t process) {
  const std::optional<InitStep> step = StepOf(message);
  if (!step) return false;
  Cursor cursor(message);
  InitLine init;
  if (!cursor.SkipTo("comm 0x") || !cursor.Hex(&init.pointer)) return false;
  if (!cursor.Skip(" rank ") || !cursor.Number(&init.rank) || init.rank < 0 ||
      init.rank > INT32_MAX) {
    return false;
  }
  if (!cursor.SkipTo("ranks ") || !cursor.Number(&init.ranks) || init.ranks <= 0 ||
      init.ranks > INT32_MAX) {
    return false;
  }
  if (cursor.SkipTo("cudaDev ")) cursor.Number(&init.device);
  if (cursor.SkipTo("busId ")) cursor.Hex(&init.bus_id);
  init.device = std::min<int64_t>(init.device, 1024);
  if (*step == InitStep::kEnd) {
    EndMember(init, process);
    return true;
  }
  const uint32_t communicator = CommunicatorOf(CommunicatorId(cursor, process), init.ranks, line);
  StartMember(init, *step, communicator, process);
  return true;
}

void Collector::EndMember(const InitLine& init, uint32_t process) {
  const uint32_t index = MemberOf(process, init.pointer, init.ranks);
  if (index == UINT32_MAX) return;
  CommRank& member = facts_->members[index];
  member.rank = static_cast<int32_t>(init.rank);
  member.ended = true;
  if (member.device < 0) member.device = static_cast<int32_t>(init.device);
  if (member.bus_id == 0) member.bus_id = init.bus_id;
}

// Split communicators have no id of their own since 2.24: the parent, the number of the split and
// the colour make one.
uint64_t Collector::CommunicatorId(Cursor cursor, uint32_t process) const {
  uint64_t id = 0;
  Cursor rest = cursor;
  if (rest.SkipTo("commId 0x") && rest.Hex(&id)) return id;
  if (!cursor.SkipTo("parent 0x")) return id;
  uint64_t parent = 0;
  int64_t splits = 0;
  int64_t colour = 0;
  cursor.Hex(&parent);
  if (cursor.SkipTo("splitCount ")) cursor.Number(&splits);
  if (cursor.SkipTo("color ")) cursor.Number(&colour);
  const auto known = members_.find(Mix(process, parent));
  const uint64_t family =
      known == members_.end()
          ? 0
          : facts_->communicators[facts_->members[known->second].communicator].id;
  return Mix(Mix(family, static_cast<uint64_t>(splits)), static_cast<uint64_t>(colour));
}

void Collector::StartMember(const InitLine& init, InitStep step, uint32_t communicator,
                            uint32_t process) {
  const auto known = members_.find(Mix(process, init.pointer));
  uint32_t index = known == members_.end() ? UINT32_MAX : known->second;
  // A pointer that is reused for another communicator, or after its end, is a new member.
  if (index != UINT32_MAX) {
    const CommRank& member = facts_->members[index];
    if (member.ended || (step == InitStep::kStart && member.started) ||
        (member.started && member.communicator != communicator)) {
      index = UINT32_MAX;
    }
  }
  if (index == UINT32_MAX) index = NewMember(process, init.pointer, communicator);
  if (index == UINT32_MAX) return;
  CommRank& member = facts_->members[index];
  member.communicator = communicator;
  member.rank = static_cast<int32_t>(init.rank);
  member.device = static_cast<int32_t>(init.device);
  member.bus_id = init.bus_id;
  member.started = true;
  if (step == InitStep::kComplete) member.complete = true;
  if (member.start.line == 0) member.start = spot_;
  LoggedProcess& owner = facts_->processes[process];
  owner.member = index;
  if (owner.rank < 0) owner.rank = init.rank;
}

bool Collector::InitTimings(std::string_view message, uint32_t process) {
  // "Init timings - ncclCommInitRank: rank 0 nranks 2 total 1.25 (kernels ..., bootstrap 0.02,
  // ...)"
  Cursor cursor(message);
  int64_t rank = 0;
  int64_t ranks = 0;
  double total = 0;
  if (!cursor.SkipTo("rank ") || !cursor.Number(&rank)) return false;
  if (!cursor.SkipTo("ranks ") || !cursor.Number(&ranks)) return false;
  if (!cursor.SkipTo("total ") || !cursor.Real(&total)) return false;
  CommRank* member = Current(process);
  if (member == nullptr || member->rank != rank) {
    // With several ranks in one process: the one with this number that began last.
    member = nullptr;
    for (size_t i = facts_->members.size(); i-- > 0 && facts_->members.size() - i < 256;) {
      CommRank& other = facts_->members[i];
      if (other.process == process && other.rank == rank) {
        member = &other;
        break;
      }
    }
  }
  if (member == nullptr) return true;
  member->init_seconds = total;
  if (cursor.SkipTo("bootstrap ")) cursor.Real(&member->bootstrap_seconds);
  return true;
}

void Collector::Finish() {
  NameHosts();
  // Assigns members without a start line if exactly one communicator of that size misses them.
  const size_t count = facts_->communicators.size();
  std::vector<std::vector<bool>> present(count);
  const auto mark = [&](const CommRank& member) {
    std::vector<bool>& ranks = present[member.communicator];
    const auto size = static_cast<size_t>(
        std::min<int64_t>(facts_->communicators[member.communicator].ranks, 1 << 20));
    if (ranks.empty()) ranks.resize(size);
    if (member.rank >= 0 && static_cast<size_t>(member.rank) < ranks.size()) {
      ranks[static_cast<size_t>(member.rank)] = true;
    }
  };
  for (const CommRank& member : facts_->members) {
    if (facts_->communicators[member.communicator].id != 0) mark(member);
  }
  for (size_t i = 0; i < facts_->members.size(); ++i) {
    CommRank& member = facts_->members[i];
    const LoggedComm& own = facts_->communicators[member.communicator];
    if (member.rank < 0) {
      member.rank = static_cast<int32_t>(
          std::min<int64_t>(facts_->processes[member.process].rank, INT32_MAX));
    }
    if (own.id == 0 && member.rank >= 0) {
      uint32_t home = UINT32_MAX;
      int homes = 0;
      for (size_t c = 0; c < count && count <= 64; ++c) {
        const LoggedComm& other = facts_->communicators[c];
        if (other.id == 0 || other.ranks != own.ranks || present[c].empty()) continue;
        if (static_cast<size_t>(member.rank) >= present[c].size()) continue;
        if (present[c][static_cast<size_t>(member.rank)]) continue;
        home = static_cast<uint32_t>(c);
        ++homes;
      }
      if (homes == 1) {
        member.communicator = home;
        mark(member);
      }
    }
    facts_->communicators[member.communicator].members.push_back(static_cast<uint32_t>(i));
  }
  for (LoggedComm& communicator : facts_->communicators) {
    std::stable_sort(
        communicator.members.begin(), communicator.members.end(),
        [&](uint32_t a, uint32_t b) { return facts_->members[a].rank < facts_->members[b].rank; });
  }
}

}  // namespace diapason::logs
