#include "journal/record.h"

#include <cmath>
#include <utility>

#include "base/printable.h"
#include "base/text.h"

namespace diapason::journal {
namespace {

std::string Quoted(std::string_view name) { return '"' + std::string(name) + '"'; }

// JSON has no NaN and no infinity.
std::string Number(float value) { return std::isfinite(value) ? Format("%.9g", value) : "null"; }

// The fields common to all kinds.
std::string Head(const char* type, const JournalRecord& record) {
  return Format("{\"type\":\"%s\",\"time_ns\":%llu,\"comm\":%u", type,
                static_cast<unsigned long long>(record.time_ns), record.communicator);
}

std::string CollectiveAndBytes(const JournalRecord& record) {
  return Format(",\"collective\":%s,\"bytes\":%llu",
                Quoted(CollectiveName(static_cast<Collective>(record.collective))).c_str(),
                static_cast<unsigned long long>(record.bytes));
}

std::string ConfigFields(const JournalRecord& record, Library library) {
  const auto collective = static_cast<Collective>(record.collective);
  return Format(",\"algorithm\":%s,\"protocol\":%s,\"channels\":%d",
                Quoted(AlgorithmName(library, collective, record.algorithm)).c_str(),
                Quoted(ProtocolName(library, record.protocol)).c_str(), record.channels);
}

std::string TableField(const JournalRecord& record) {
  std::string text = ",\"table\":[";
  for (int a = 0; a < record.table_algorithms; ++a) {
    text += a == 0 ? "[" : ",[";
    for (int p = 0; p < record.table_protocols; ++p) {
      if (p > 0) text += ",";
      text += Number(record.table[a * record.table_protocols + p]);
    }
    text += "]";
  }
  return text + "]";
}

std::string EpochFields(const JournalRecord& record) {
  return Format(",\"epoch\":%u,\"index\":%llu", record.epoch,
                static_cast<unsigned long long>(record.index));
}

// Nine digits: exact nanoseconds up to a second.
std::string Microseconds(double seconds) {
  return std::isfinite(seconds) ? Format("%.9g", seconds * 1e6) : "null";
}

std::string DecisionLine(const JournalRecord& record, Library library) {
  const auto collective = static_cast<Collective>(record.collective);
  std::string line =
      Head("decision", record) + Format(",\"call\":%u", record.call) + CollectiveAndBytes(record) +
      Format(",\"pipe_ops\":%d,\"reg_buff\":%d", record.pipe_ops, record.reg_buff) +
      ConfigFields(record, library) +
      Format(",\"line\":%d,\"reason\":%s,\"applied\":%s", record.line,
             Quoted(ReasonName(record.reason)).c_str(), record.applied ? "true" : "false");
  if (record.default_algorithm != kKeep) {
    line += Format(",\"default_algorithm\":%s,\"default_protocol\":%s",
                   Quoted(AlgorithmName(library, collective, record.default_algorithm)).c_str(),
                   Quoted(ProtocolName(library, record.default_protocol)).c_str());
  }
  if (record.learning) line += EpochFields(record);
  if (record.captured) line += ",\"captured\":true";
  if (record.table_algorithms > 0) line += TableField(record);
  return line + "}";
}

std::string RanLine(const JournalRecord& record, Library library) {
  std::string line = Head("run", record) + Format(",\"call\":%u", record.call) +
                     CollectiveAndBytes(record) + ConfigFields(record, library) +
                     Format(",\"sequence\":%llu", static_cast<unsigned long long>(record.sequence));
  if (record.captured) line += ",\"captured\":true";
  if (record.seconds != 0) {
    line += Format(",\"gpu_start_ns\":%llu,\"us\":%s",
                   static_cast<unsigned long long>(record.gpu_start_ns),
                   Microseconds(record.seconds).c_str());
  }
  return line + "}";
}

std::string RewardLine(const JournalRecord& record, Library library) {
  std::string line =
      Head("reward", record) + CollectiveAndBytes(record) + EpochFields(record) +
      ConfigFields(record, library) +
      Format(",\"us\":%s,\"samples\":%u,\"skew\":%s", Microseconds(record.seconds).c_str(),
             record.samples, Number(record.skew).c_str());
  if (record.iteration) line += ",\"iteration\":true";
  return line + "}";
}

}  // namespace

std::string RecordLine(const JournalRecord& record, Library library) {
  switch (record.kind) {
    case RecordKind::kDecision:
      return DecisionLine(record, library);
    case RecordKind::kRan:
      return RanLine(record, library);
    case RecordKind::kBypassed:
      return Head("bypassed", record) + CollectiveAndBytes(record) +
             (record.captured ? ",\"captured\":true}" : "}");
    case RecordKind::kReward:
      return RewardLine(record, library);
  }
  return "{}";
}

std::string CommunicatorLine(const JournalComm& communicator) {
  std::string line = Format(
      "{\"type\":\"communicator\",\"comm\":%u,\"id\":\"0x%llx\",\"api\":%d,\"library\":%s,"
      "\"library_version\":%d,\"nodes\":%lld,\"ranks\":%lld,\"mode\":%s,\"policy\":%s,"
      "\"digest\":%s,\"rows\":%zu,\"chain\":%s",
      communicator.number, static_cast<unsigned long long>(communicator.id), communicator.api,
      Quoted(LibraryName(communicator.library)).c_str(), communicator.library_version,
      static_cast<long long>(communicator.shape.nodes),
      static_cast<long long>(communicator.shape.ranks), JsonBytes(communicator.mode).c_str(),
      JsonBytes(communicator.policy).c_str(), JsonBytes(communicator.digest).c_str(),
      communicator.rows, JsonBytes(communicator.chain).c_str());
  if (communicator.rank >= 0) line += Format(",\"rank\":%d", communicator.rank);
  for (const auto& [key, text] :
       {std::pair{"name", &communicator.name}, std::pair{"store", &communicator.store},
        std::pair{"agreed", &communicator.agreed}}) {
    if (!text->empty()) line += Format(",\"%s\":%s", key, JsonBytes(*text).c_str());
  }
  return line + "}";
}

}  // namespace diapason::journal
