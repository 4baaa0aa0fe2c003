#include "journal/reader.h"

#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"

namespace diapason::journal {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostBytes = size_t{4} << 30;
constexpr size_t kLongestLine = 64 * 1024;

// Typed access that returns false instead of throwing.
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

bool Get(const Json& object, const char* key, double* value) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return false;
  *value = found->get<double>();
  return std::isfinite(*value);
}

// True also if the key is missing.
template <typename Value>
bool GetIfThere(const Json& object, const char* key, Value* value) {
  return !object.contains(key) || Get(object, key, value);
}

bool ReadTable(const Json& object, JournalRecord* record) {
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

// Includes algorithms that run, but cannot be chosen.
Result<int> ParseAnyAlgorithm(Library library, Collective collective, const std::string& name) {
  if (library == Library::kRccl && name == AlgorithmName(library, collective, kRcclDirect)) {
    return kRcclDirect;
  }
  return ParseAlgorithm(library, collective, name);
}

bool ReadPair(const Json& object, Library library, Collective collective, const char* algorithm_key,
              const char* protocol_key, int8_t* algorithm, int8_t* protocol) {
  std::string algorithm_name;
  std::string protocol_name;
  if (!Get(object, algorithm_key, &algorithm_name) || !Get(object, protocol_key, &protocol_name)) {
    return false;
  }
  const auto read = [](const std::string& name, const Result<int>& parsed, int8_t* value) {
    // "?": the library has a number without a name here.
    if (name == "-1" || name == "?") {
      *value = kKeep;
      return true;
    }
    if (!parsed.ok()) return false;
    *value = static_cast<int8_t>(parsed.value());
    return true;
  };
  return read(algorithm_name, ParseAnyAlgorithm(library, collective, algorithm_name), algorithm) &&
         read(protocol_name, ParseProtocol(library, protocol_name), protocol);
}

constexpr char kMalformed[] = "a field is missing or of another type";

// The fields common to all kinds, and the library whose names they use.
Status ReadHead(const Json& object, const JournalContents& contents, JournalRecord* record,
                Library* library) {
  std::string collective;
  if (!Get(object, "time_ns", &record->time_ns) || !Get(object, "comm", &record->communicator) ||
      !Get(object, "collective", &collective) || !Get(object, "bytes", &record->bytes) ||
      !GetIfThere(object, "captured", &record->captured)) {
    return Invalid(kMalformed);
  }
  const JournalComm* communicator = contents.Find(record->communicator);
  if (communicator == nullptr) return Invalid("it names a communicator not seen before");
  *library = communicator->library;
  // Calls that bypassed the tuner may be of collectives that it is never asked about.
  const bool asked = record->kind == RecordKind::kDecision || record->kind == RecordKind::kReward;
  if (!asked && collective == "?") {
    record->collective = kNamelessCollective;
    return {};
  }
  ASSIGN_OR_RETURN(const Collective parsed,
                   ParseCollective(asked ? *library : Library::kOpenMpi, collective));
  record->collective = static_cast<uint8_t>(parsed);
  return {};
}

Status ReadConfig(const Json& object, Library library, JournalRecord* record) {
  if (!Get(object, "channels", &record->channels)) return Invalid(kMalformed);
  if (!ReadPair(object, library, static_cast<Collective>(record->collective), "algorithm",
                "protocol", &record->algorithm, &record->protocol)) {
    return Invalid("it names an unknown algorithm or protocol");
  }
  return {};
}

// More than a year in microseconds is not a duration of a collective.
constexpr double kMostMicroseconds = 4e13;

bool ReadMicroseconds(const Json& object, JournalRecord* record) {
  double microseconds = 0;
  if (!Get(object, "us", &microseconds) || microseconds < 0 || microseconds > kMostMicroseconds) {
    return false;
  }
  record->seconds = microseconds * 1e-6;
  return true;
}

Status ReadDecision(const Json& object, Library library, JournalRecord* record) {
  std::string reason;
  if (!Get(object, "call", &record->call) || !Get(object, "pipe_ops", &record->pipe_ops) ||
      !Get(object, "reg_buff", &record->reg_buff) || !Get(object, "line", &record->line) ||
      !Get(object, "reason", &reason) || !Get(object, "applied", &record->applied) ||
      !GetIfThere(object, "epoch", &record->epoch) ||
      !GetIfThere(object, "index", &record->index) ||
      !GetIfThere(object, "group_calls", &record->group_calls) ||
      object.contains("epoch") != object.contains("index")) {
    return Invalid(kMalformed);
  }
  record->learning = object.contains("index");
  ASSIGN_OR_RETURN(const Reason parsed, ParseReason(reason.substr(0, 40)));
  record->reason = parsed;
  RETURN_IF_ERROR(ReadConfig(object, library, record));
  if (object.contains("default_algorithm") &&
      !ReadPair(object, library, static_cast<Collective>(record->collective), "default_algorithm",
                "default_protocol", &record->default_algorithm, &record->default_protocol)) {
    return Invalid("it names an unknown default");
  }
  if (!ReadTable(object, record)) return Invalid("its table is malformed");
  return {};
}

Status ReadRan(const Json& object, Library library, JournalRecord* record) {
  if (!Get(object, "call", &record->call) || !Get(object, "sequence", &record->sequence) ||
      !GetIfThere(object, "gpu_start_ns", &record->gpu_start_ns) ||
      (object.contains("us") && !ReadMicroseconds(object, record))) {
    return Invalid(kMalformed);
  }
  return ReadConfig(object, library, record);
}

Status ReadReward(const Json& object, Library library, JournalRecord* record) {
  double skew = 0;
  if (!Get(object, "epoch", &record->epoch) || !Get(object, "index", &record->index) ||
      !Get(object, "samples", &record->samples) || !Get(object, "skew", &skew) || skew < 0 ||
      skew > std::numeric_limits<float>::max() || !ReadMicroseconds(object, record) ||
      !GetIfThere(object, "iteration", &record->iteration)) {
    return Invalid(kMalformed);
  }
  record->learning = true;
  record->skew = static_cast<float>(skew);
  return ReadConfig(object, library, record);
}

Status ReadRecord(const Json& object, RecordKind kind, const char* what,
                  JournalContents* contents) {
  JournalRecord record;
  record.kind = kind;
  Library library = Library::kNccl;
  Status read = ReadHead(object, *contents, &record, &library);
  if (read.ok()) {
    read = kind == RecordKind::kDecision ? ReadDecision(object, library, &record)
           : kind == RecordKind::kRan    ? ReadRan(object, library, &record)
           : kind == RecordKind::kReward ? ReadReward(object, library, &record)
                                         : Status();
  }
  if (!read.ok()) return read.WithContext(what);
  contents->records.push_back(record);
  return {};
}

Status ReadCommunicator(const Json& object, JournalContents* contents) {
  JournalComm communicator;
  std::string library;
  std::string id;
  if (!Get(object, "comm", &communicator.number) || !Get(object, "api", &communicator.api) ||
      !Get(object, "library", &library) || !Get(object, "id", &id) ||
      !Get(object, "library_version", &communicator.library_version) ||
      !Get(object, "nodes", &communicator.shape.nodes) ||
      !Get(object, "ranks", &communicator.shape.ranks) ||
      !Get(object, "mode", &communicator.mode) || !Get(object, "policy", &communicator.policy) ||
      !Get(object, "digest", &communicator.digest) || !Get(object, "rows", &communicator.rows) ||
      !Get(object, "chain", &communicator.chain) ||
      !GetIfThere(object, "rank", &communicator.rank) ||
      !GetIfThere(object, "name", &communicator.name) ||
      !GetIfThere(object, "store", &communicator.store) ||
      !GetIfThere(object, "agreed", &communicator.agreed) ||
      !GetIfThere(object, "created_ns", &communicator.created_ns) ||
      !GetIfThere(object, "ended_ns", &communicator.ended_ns) || communicator.rank < -1) {
    return Invalid("a communicator lacks a field or has one of another type");
  }
  ASSIGN_OR_RETURN(const Library parsed, ParseLibrary(library));
  communicator.library = parsed;
  const std::string_view digits = id.starts_with("0x") ? std::string_view(id).substr(2) : "";
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), communicator.id, 16);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    return Invalid("a communicator's id is no hexadecimal number");
  }
  const auto [at, fresh] =
      contents->by_number.emplace(communicator.number, contents->communicators.size());
  if (fresh) {
    contents->communicators.push_back(std::move(communicator));
    return {};
  }
  // A second line may add fields to a communicator, but not change them.
  JournalComm& before = contents->communicators[at->second];
  if (before.id != communicator.id || before.library != communicator.library ||
      before.shape != communicator.shape) {
    return Invalid("a communicator has the number of another one");
  }
  before = std::move(communicator);
  return {};
}

Status ReadLine(std::string_view line, JournalContents* contents) {
  if (line.size() > kLongestLine) return Invalid("the line is too long");
  const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  std::string type;
  if (!object.is_object() || !Get(object, "type", &type)) {
    return Invalid("the line is no JSON object with a type");
  }
  if (type == "decision") {
    return ReadRecord(object, RecordKind::kDecision, "a decision", contents);
  }
  if (type == "run") return ReadRecord(object, RecordKind::kRan, "a run", contents);
  if (type == "bypassed") {
    return ReadRecord(object, RecordKind::kBypassed, "a call that bypassed the tuner", contents);
  }
  if (type == "reward") return ReadRecord(object, RecordKind::kReward, "a reward", contents);
  if (type == "communicator") return ReadCommunicator(object, contents);
  if (type == "step") {
    uint64_t time_ns = 0;
    if (!Get(object, "time_ns", &time_ns)) return Invalid("a step lacks its time");
    contents->steps.push_back(time_ns);
    return {};
  }
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
        !Get(object, "pid", &contents->pid) ||
        !GetIfThere(object, "diapason", &contents->diapason) ||
        !GetIfThere(object, "time_ns", &contents->started_ns)) {
      return Invalid("the first line lacks a field");
    }
    return {};
  }
  return Invalid("unknown type '" + type.substr(0, 40) + "'");
}

}  // namespace

const JournalComm* JournalContents::Find(uint32_t number) const {
  const auto found = by_number.find(number);
  return found == by_number.end() ? nullptr : &communicators[found->second];
}

Result<JournalContents> ParseJournal(std::string_view text, const std::string& name) {
  JournalContents contents;
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
      return Invalid(Format("'{}' is a journal of version {}; this diapason reads up to {}", name,
                            contents.version, kFormatVersion));
    }
    if (!read.ok() && ++contents.bad_lines == 1) {
      contents.first_bad_line = number;
      contents.first_bad_why = read.message();
    }
  }
  if (contents.version < 1) return Invalid("'" + name + "' is not a journal: it is empty");
  return contents;
}

Result<JournalContents> ReadJournal(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostBytes));
  return ParseJournal(text, path);
}

Result<JournalContents> ReadJournalHead(const std::string& path, size_t most_bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return ReadJournal(path);  // which says why
  std::string text(most_bytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(most_bytes));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() == most_bytes) text.resize(text.rfind('\n') + 1);  // npos + 1 is 0
  return ParseJournal(text, path);
}

}  // namespace diapason::journal
