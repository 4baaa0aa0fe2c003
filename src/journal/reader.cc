#include "journal/reader.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"

namespace diapason::journal {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostBytes = size_t{4} << 30;
constexpr size_t kLongestLine = 64 * 1024;

// Typed access that answers "no" instead of throwing.
bool Get(const Json& object, const char* key, std::string* value) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return false;
  *value = found->get<std::string>();
  return true;
}

template <typename Integer>
bool Get(const Json& object, const char* key, Integer* value) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return false;
  if (found->is_number_unsigned()) {
    const auto number = found->get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<Integer>::max())) return false;
    *value = static_cast<Integer>(number);
    return true;
  }
  const auto number = found->get<int64_t>();
  if (number < static_cast<int64_t>(std::numeric_limits<Integer>::min())) return false;
  *value = static_cast<Integer>(number);
  return true;
}

bool Get(const Json& object, const char* key, bool* value) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_boolean()) return false;
  *value = found->get<bool>();
  return true;
}

bool ReadTable(const Json& object, Record* record) {
  const auto found = object.find("table");
  if (found == object.end()) return true;
  if (!found->is_array() || found->empty()) return false;
  size_t cells = 0;
  const size_t protocols = (*found)[0].is_array() ? (*found)[0].size() : 0;
  for (const Json& row : *found) {
    if (!row.is_array() || row.size() != protocols || protocols == 0) return false;
    for (const Json& cell : row) {
      if (cells == kTableCells || !(cell.is_number() || cell.is_null())) return false;
      record->table[cells++] = cell.is_null() ? std::nanf("") : cell.get<float>();
    }
  }
  record->table_algorithms = static_cast<uint8_t>(found->size());
  record->table_protocols = static_cast<uint8_t>(protocols);
  return true;
}

bool ReadPair(const Json& object, Library library, Collective collective, const char* algorithm_key,
              const char* protocol_key, int8_t* algorithm, int8_t* protocol) {
  std::string algorithm_name;
  std::string protocol_name;
  if (!Get(object, algorithm_key, &algorithm_name) || !Get(object, protocol_key, &protocol_name)) {
    return false;
  }
  const auto read = [](const std::string& name, const Result<int>& parsed, int8_t* value) {
    // "?": the library has a number for it, and we no word.
    if (name == "-1" || name == "?") {
      *value = kKeep;
      return true;
    }
    if (!parsed.ok()) return false;
    *value = static_cast<int8_t>(parsed.value());
    return true;
  };
  return read(algorithm_name, ParseAlgorithm(library, collective, algorithm_name), algorithm) &&
         read(protocol_name, ParseProtocol(library, protocol_name), protocol);
}

Status ReadRecord(const Json& object, Contents* contents) {
  Record record;
  std::string collective;
  std::string reason;
  if (!Get(object, "time_ns", &record.time_ns) || !Get(object, "comm", &record.communicator) ||
      !Get(object, "call", &record.call) || !Get(object, "collective", &collective) ||
      !Get(object, "bytes", &record.bytes) || !Get(object, "pipe_ops", &record.pipe_ops) ||
      !Get(object, "reg_buff", &record.reg_buff) || !Get(object, "channels", &record.channels) ||
      !Get(object, "line", &record.line) || !Get(object, "reason", &reason) ||
      !Get(object, "applied", &record.applied)) {
    return Invalid("a decision lacks a field or has one of another type");
  }
  const Communicator* communicator = contents->Find(record.communicator);
  if (communicator == nullptr) return Invalid("a decision names a communicator not seen before");
  const Library library = communicator->library;
  const Result<Collective> parsed_collective = ParseCollective(library, collective);
  if (!parsed_collective.ok()) return parsed_collective.status();
  record.collective = static_cast<uint8_t>(parsed_collective.value());
  const Result<Reason> parsed_reason = ParseReason(reason);
  if (!parsed_reason.ok()) return parsed_reason.status();
  record.reason = parsed_reason.value();
  if (!ReadPair(object, library, parsed_collective.value(), "algorithm", "protocol",
                &record.algorithm, &record.protocol)) {
    return Invalid("a decision names an unknown algorithm or protocol");
  }
  if (object.contains("default_algorithm") &&
      !ReadPair(object, library, parsed_collective.value(), "default_algorithm", "default_protocol",
                &record.default_algorithm, &record.default_protocol)) {
    return Invalid("a decision names an unknown default");
  }
  if (!ReadTable(object, &record)) return Invalid("a decision holds a malformed table");
  contents->records.push_back(record);
  return {};
}

Status ReadCommunicator(const Json& object, Contents* contents) {
  Communicator communicator;
  std::string library;
  std::string id;
  if (!Get(object, "comm", &communicator.number) || !Get(object, "api", &communicator.api) ||
      !Get(object, "library", &library) || !Get(object, "id", &id) ||
      !Get(object, "library_version", &communicator.library_version) ||
      !Get(object, "nodes", &communicator.shape.nodes) ||
      !Get(object, "ranks", &communicator.shape.ranks) ||
      !Get(object, "mode", &communicator.mode) || !Get(object, "policy", &communicator.policy) ||
      !Get(object, "digest", &communicator.digest) || !Get(object, "rows", &communicator.rows) ||
      !Get(object, "chain", &communicator.chain)) {
    return Invalid("a communicator lacks a field or has one of another type");
  }
  const Result<Library> parsed = ParseLibrary(library);
  if (!parsed.ok()) return parsed.status();
  communicator.library = parsed.value();
  const std::string_view digits = id.starts_with("0x") ? std::string_view(id).substr(2) : "";
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), communicator.id, 16);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    return Invalid("a communicator's id is no hexadecimal number");
  }
  contents->by_number.emplace(communicator.number, contents->communicators.size());
  contents->communicators.push_back(std::move(communicator));
  return {};
}

Status ReadLine(std::string_view line, Contents* contents) {
  if (line.size() > kLongestLine) return Invalid("the line is too long");
  const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  std::string type;
  if (!object.is_object() || !Get(object, "type", &type)) {
    return Invalid("the line is no JSON object with a type");
  }
  if (type == "decision") return ReadRecord(object, contents);
  if (type == "communicator") return ReadCommunicator(object, contents);
  if (type == "dropped") {
    if (!Get(object, "count", &contents->dropped)) return Invalid("a count is missing");
    return {};
  }
  if (type == "end") {
    contents->ended = true;
    return {};
  }
  if (type == "journal") {
    if (!Get(object, "version", &contents->version) || !Get(object, "host", &contents->host) ||
        !Get(object, "pid", &contents->pid)) {
      return Invalid("the first line lacks a field");
    }
    return {};
  }
  return Invalid("unknown type '" + type.substr(0, 40) + "'");
}

}  // namespace

const Communicator* Contents::Find(uint32_t number) const {
  const auto found = by_number.find(number);
  return found == by_number.end() ? nullptr : &communicators[found->second];
}

Result<Contents> ParseJournal(std::string_view text, const std::string& name) {
  Contents contents;
  int number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    if (Trim(line).empty()) continue;
    const Status read = ReadLine(line, &contents);
    if (number == 1 && contents.version < 1) {
      return Invalid("'" + name + "' is not a journal: its first line is none of ours");
    }
    if (contents.version > kFormatVersion) {
      return Invalid(Format("'%s' is a journal of version %d; this diapason reads up to %d",
                            name.c_str(), contents.version, kFormatVersion));
    }
    if (!read.ok() && ++contents.bad_lines == 1) {
      contents.first_bad_line = number;
      contents.first_bad_why = read.message();
    }
  }
  if (contents.version < 1) return Invalid("'" + name + "' is not a journal: it is empty");
  return contents;
}

Result<Contents> ReadJournal(const std::string& path) {
  const Result<std::string> text = ReadFile(path, kMostBytes);
  if (!text.ok()) return text.status();
  return ParseJournal(text.value(), path);
}

}  // namespace diapason::journal
