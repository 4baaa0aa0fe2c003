#include "journal/record.h"

#include <cmath>

#include "base/text.h"

namespace diapason::journal {
namespace {

std::string Quoted(std::string_view name) { return '"' + std::string(name) + '"'; }

// JSON has no NaN and no infinity.
std::string Number(float value) { return std::isfinite(value) ? Format("%.9g", value) : "null"; }

}  // namespace

std::string JsonText(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < ' ' || byte > 126) {
      // Paths may hold any byte; each becomes one character, so the line stays valid JSON.
      out += Format("\\u%04x", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string RecordLine(const Record& record, Library library) {
  const auto collective = static_cast<Collective>(record.collective);
  std::string line = Format(
      "{\"type\":\"decision\",\"time_ns\":%llu,\"comm\":%u,\"call\":%u,\"collective\":%s,"
      "\"bytes\":%llu,\"pipe_ops\":%d,\"reg_buff\":%d,\"algorithm\":%s,\"protocol\":%s,"
      "\"channels\":%d,\"line\":%d,\"reason\":%s,\"applied\":%s",
      static_cast<unsigned long long>(record.time_ns), record.communicator, record.call,
      Quoted(CollectiveName(collective)).c_str(), static_cast<unsigned long long>(record.bytes),
      record.pipe_ops, record.reg_buff,
      Quoted(AlgorithmName(library, collective, record.algorithm)).c_str(),
      Quoted(ProtocolName(library, record.protocol)).c_str(), record.channels, record.line,
      Quoted(ReasonName(record.reason)).c_str(), record.applied ? "true" : "false");
  if (record.default_algorithm != kKeep) {
    line += Format(",\"default_algorithm\":%s,\"default_protocol\":%s",
                   Quoted(AlgorithmName(library, collective, record.default_algorithm)).c_str(),
                   Quoted(ProtocolName(library, record.default_protocol)).c_str());
  }
  if (record.table_algorithms > 0) {
    line += ",\"table\":[";
    for (int a = 0; a < record.table_algorithms; ++a) {
      line += a == 0 ? "[" : ",[";
      for (int p = 0; p < record.table_protocols; ++p) {
        if (p > 0) line += ",";
        line += Number(record.table[a * record.table_protocols + p]);
      }
      line += "]";
    }
    line += "]";
  }
  return line + "}";
}

std::string CommunicatorLine(const Communicator& communicator) {
  return Format(
      "{\"type\":\"communicator\",\"comm\":%u,\"id\":\"0x%llx\",\"api\":%d,\"library\":%s,"
      "\"library_version\":%d,\"nodes\":%lld,\"ranks\":%lld,\"mode\":%s,\"policy\":%s,"
      "\"digest\":%s,\"rows\":%zu,\"chain\":%s}",
      communicator.number, static_cast<unsigned long long>(communicator.id), communicator.api,
      Quoted(LibraryName(communicator.library)).c_str(), communicator.library_version,
      static_cast<long long>(communicator.shape.nodes),
      static_cast<long long>(communicator.shape.ranks), JsonText(communicator.mode).c_str(),
      JsonText(communicator.policy).c_str(), JsonText(communicator.digest).c_str(),
      communicator.rows, JsonText(communicator.chain).c_str());
}

}  // namespace diapason::journal
