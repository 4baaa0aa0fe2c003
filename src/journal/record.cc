#include "journal/record.h"

#include <cmath>
#include <utility>

#include "base/printable.h"
#include "base/text.h"

namespace diapason::journal {
namespace {

std::string Quoted(std::string_view name) { return '"' + std::string(name) + '"'; }

// JSON has no NaN and no infinity.
std::string Number(float value) { return std::isfinite(value) ? Format("{:.9g}", value) : "null"; }

// The fields common to all kinds.
std::string Head(const char* type, const JournalRecord& record) {
  return Format("{{\"type\":\"{}\",\"time_ns\":{},\"comm\":{}", type, record.time_ns,
                record.communicator);
}

std::string CollectiveAndBytes(const JournalRecord& record) {
  return Format(",\"collective\":{},\"bytes\":{}",
                Quoted(CollectiveName(static_cast<Collective>(record.collective))), record.bytes);
}

std::string ConfigFields(const JournalRecord& record, Library library) {
  const auto collective = static_cast<Collective>(record.collective);
  return Format(",\"algorithm\":{},\"protocol\":{},\"channels\":{}",
                Quoted(AlgorithmName(library, collective, record.algorithm)),
                Quoted(ProtocolName(library, record.protocol)), record.channels);
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
  return Format(",\"epoch\":{},\"index\":{}", record.epoch, record.index);
}

// Nine digits: exact nanoseconds up to a second.
std::string Microseconds(double seconds) {
  return std::isfinite(seconds) ? Format("{:.9g}", seconds * 1e6) : "null";
}

std::string DecisionLine(const JournalRecord& record, Library library) {
  const auto collective = static_cast<Collective>(record.collective);
  std::string line = Head("decision", record) + Format(",\"call\":{}", record.call) +
                     CollectiveAndBytes(record) +
                     Format(",\"pipe_ops\":{},\"reg_buff\":{}", record.pipe_ops, record.reg_buff) +
                     ConfigFields(record, library) +
                     Format(",\"line\":{},\"reason\":{},\"applied\":{}", record.line,
                            Quoted(ReasonName(record.reason)), record.applied ? "true" : "false");
  if (record.default_algorithm != kKeep) {
    line += Format(",\"default_algorithm\":{},\"default_protocol\":{}",
                   Quoted(AlgorithmName(library, collective, record.default_algorithm)),
                   Quoted(ProtocolName(library, record.default_protocol)));
  }
  if (record.learning) line += EpochFields(record);
  if (record.captured) line += ",\"captured\":true";
  if (record.group_calls > 1) line += Format(",\"group_calls\":{}", record.group_calls);
  if (record.table_algorithms > 0) line += TableField(record);
  return line + "}";
}

std::string RanLine(const JournalRecord& record, Library library) {
  std::string line = Head("run", record) + Format(",\"call\":{}", record.call) +
                     CollectiveAndBytes(record) + ConfigFields(record, library) +
                     Format(",\"sequence\":{}", record.sequence);
  if (record.captured) line += ",\"captured\":true";
  if (record.seconds != 0) {
    line +=
        Format(",\"gpu_start_ns\":{},\"us\":{}", record.gpu_start_ns, Microseconds(record.seconds));
  }
  return line + "}";
}

std::string RewardLine(const JournalRecord& record, Library library) {
  std::string line = Head("reward", record) + CollectiveAndBytes(record) + EpochFields(record) +
                     ConfigFields(record, library) +
                     Format(",\"us\":{},\"samples\":{},\"skew\":{}", Microseconds(record.seconds),
                            record.samples, Number(record.skew));
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
    case RecordKind::kStep:
      return Format("{{\"type\":\"step\",\"time_ns\":{}}}", record.time_ns);
  }
  return "{}";
}

std::string CommunicatorLine(const JournalComm& communicator) {
  std::string line = Format(
      "{{\"type\":\"communicator\",\"comm\":{},\"id\":\"0x{:x}\",\"api\":{},\"library\":{},"
      "\"library_version\":{},\"nodes\":{},\"ranks\":{},\"mode\":{},\"policy\":{},"
      "\"digest\":{},\"rows\":{},\"chain\":{}",
      communicator.number, communicator.id, communicator.api,
      Quoted(LibraryName(communicator.library)), communicator.library_version,
      communicator.shape.nodes, communicator.shape.ranks, JsonBytes(communicator.mode),
      JsonBytes(communicator.policy), JsonBytes(communicator.digest), communicator.rows,
      JsonBytes(communicator.chain));
  if (communicator.rank >= 0) line += Format(",\"rank\":{}", communicator.rank);
  for (const auto& [key, text] :
       {std::pair{"name", &communicator.name}, std::pair{"store", &communicator.store},
        std::pair{"agreed", &communicator.agreed}}) {
    if (!text->empty()) line += Format(",\"{}\":{}", key, JsonBytes(*text));
  }
  for (const auto& [key, time] : {std::pair{"created_ns", communicator.created_ns},
                                  std::pair{"ended_ns", communicator.ended_ns}}) {
    if (time != 0) line += Format(",\"{}\":{}", key, time);
  }
  return line + "}";
}

}  // namespace diapason::journal
