#include "journal/joined.h"

#include <unordered_map>

namespace diapason::journal {
namespace {

uint64_t CallKey(const JournalRecord& record) {
  return uint64_t{record.communicator} << 32 | record.call;
}

}  // namespace

Config ConfigOf(const JournalRecord& record) {
  return {record.algorithm, record.protocol, record.channels};
}

Config AskedOf(const JournalRecord& decision) {
  return decision.applied ? ConfigOf(decision) : Config{};
}

Obeyed CompareRun(const JournalRecord& decision, const JournalRecord& run) {
  const auto differs = [](int asked, int ran) {
    return asked != kKeep && ran != kKeep && asked != ran;
  };
  const Config asked = AskedOf(decision);
  if (differs(asked.algorithm, run.algorithm) || differs(asked.protocol, run.protocol)) {
    return Obeyed::kOtherPair;
  }
  return asked.channels > 0 && run.channels > 0 && asked.channels != run.channels
             ? Obeyed::kOtherChannels
             : Obeyed::kYes;
}

std::vector<uint32_t> JoinRuns(const JournalContents& contents) {
  std::vector<uint32_t> partners(contents.records.size(), kNoPartner);
  std::unordered_map<uint64_t, uint32_t> decisions;
  for (size_t i = 0; i < contents.records.size(); ++i) {
    const JournalRecord& record = contents.records[i];
    if (record.kind == RecordKind::kDecision && record.call != 0) {
      decisions[CallKey(record)] = static_cast<uint32_t>(i);
    }
  }
  for (size_t i = 0; i < contents.records.size(); ++i) {
    const JournalRecord& record = contents.records[i];
    if (record.kind != RecordKind::kRan || record.call == 0) continue;
    const auto found = decisions.find(CallKey(record));
    if (found == decisions.end()) continue;
    partners[i] = found->second;
    if (partners[found->second] == kNoPartner) partners[found->second] = static_cast<uint32_t>(i);
  }
  return partners;
}

std::vector<bool> SeesRuns(const JournalContents& contents) {
  std::vector<bool> sees(contents.communicators.size(), false);
  for (const JournalRecord& record : contents.records) {
    if (record.kind != RecordKind::kRan || record.call == 0) continue;
    const auto found = contents.by_number.find(record.communicator);
    if (found != contents.by_number.end()) sees[found->second] = true;
  }
  return sees;
}

}  // namespace diapason::journal
