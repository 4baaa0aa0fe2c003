#include "mpi_record/reader.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "base/file.h"
#include "base/text.h"

namespace diapason::mpi_record {
namespace {

constexpr size_t kMostBytes = size_t{4} << 30;
constexpr uint64_t kLongestCall = 3600ull * 1000000000;  // a longer one is damage
constexpr uint32_t kMostRanks = 1u << 24;

template <typename T>
T Take(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

Status CheckHead(const FileHead& head, size_t bytes, const std::string& name) {
  if (head.version > kVersion) {
    return Invalid(Format("'{}' is an MPI recording of version {}; this diapason reads up to {}",
                          name, head.version, kVersion));
  }
  if (head.version == 0 || head.byte_order != kByteOrder || head.head_bytes != sizeof(FileHead) ||
      head.call_bytes != sizeof(CallRecord) || head.head_bytes > bytes ||
      head.calls_known > head.totals.size()) {
    return Invalid("'" + name + "' is a damaged MPI recording, or one of another kind of machine");
  }
  return {};
}

class Parser {
 public:
  explicit Parser(Recording* recording) : recording_(*recording) {}

  void Block(const BlockHead& head, std::string_view bytes) {
    bool fine = false;
    switch (static_cast<BlockKind>(head.kind)) {
      case BlockKind::kProcess:
        fine = Process(bytes);
        break;
      case BlockKind::kCommunicator:
        fine = Communicator(bytes);
        break;
      case BlockKind::kCalls:
        fine = Calls(bytes);
        break;
      case BlockKind::kSite:
        fine = bytes.size() >= sizeof(uint64_t);
        if (fine) recording_.sites[Take<uint64_t>(bytes)] = bytes.substr(sizeof(uint64_t));
        break;
    }
    if (!fine) ++recording_.bad_blocks;
  }

 private:
  bool Process(std::string_view text) {
    for (const std::string_view line : Split(text, '\n')) {
      const size_t equals = line.find('=');
      if (equals == std::string_view::npos) continue;
      const std::string_view key = line.substr(0, equals);
      const std::string_view value = line.substr(equals + 1);
      int64_t number = 0;
      if (key == "host") recording_.host = value;
      if (key == "library") recording_.library = value;
      if (key == "program") recording_.program = value;
      if (key != "rank" && key != "size") continue;
      if (!ParseSigned(value, &number) || number < -1 || number > kMostRanks) return false;
      (key == "rank" ? recording_.rank : recording_.size) = static_cast<int>(number);
    }
    return true;
  }

  bool Communicator(std::string_view bytes) {
    if (bytes.size() < sizeof(CommBlock)) return false;
    RecordedComm comm{Take<CommBlock>(bytes), std::string(bytes.substr(sizeof(CommBlock)))};
    const CommBlock& facts = comm.facts;
    const auto known = by_number_.find(facts.number);
    if (known != by_number_.end()) {
      // The second block of a communicator says that it has ended.
      CommBlock& before = recording_.comms[known->second].facts;
      if (before.id != facts.id || facts.ended_ns == 0) return false;
      before.ended_ns = facts.ended_ns;
      return true;
    }
    if (facts.number == 0 || facts.ranks == 0 || facts.ranks > kMostRanks ||
        facts.remote_ranks > kMostRanks || facts.nodes > facts.ranks || facts.rank < 0 ||
        static_cast<uint32_t>(facts.rank) >= facts.ranks) {
      return false;
    }
    by_number_.emplace(facts.number, recording_.comms.size());
    recording_.comms.push_back(std::move(comm));
    return true;
  }

  bool Calls(std::string_view bytes) {
    if (bytes.size() % sizeof(CallRecord) != 0) return false;
    for (; !bytes.empty(); bytes.remove_prefix(sizeof(CallRecord))) {
      const auto call = Take<CallRecord>(bytes);
      if (call.call >= kMpiCallCount || !by_number_.contains(call.communicator) ||
          call.duration_ns > kLongestCall || call.start_ns > INT64_MAX) {
        ++recording_.bad_blocks;
        continue;
      }
      recording_.calls.push_back(call);
    }
    return true;
  }

  Recording& recording_;
  std::map<uint32_t, size_t> by_number_;
};

}  // namespace

double Recording::ProgramSeconds() const {
  const uint64_t from = head.init_ns != 0 ? head.init_ns : head.loaded_ns;
  const uint64_t to = head.finalize_ns != 0 ? head.finalize_ns : head.written_ns;
  return to > from ? static_cast<double>(to - from) * 1e-9 : 0;
}

double Recording::CollectiveSeconds() const {
  double sum = 0;
  for (const CallTotals& totals : head.totals) sum += static_cast<double>(totals.ns) * 1e-9;
  return sum;
}

bool IsRecording(std::string_view text) {
  return text.starts_with(std::string_view(kMagic, sizeof(kMagic)));
}

bool IsRecordingFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char first[sizeof(kMagic)] = {};
  file.read(first, sizeof(first));
  return file && IsRecording({first, sizeof(first)});
}

Result<Recording> ParseRecording(std::string_view text, const std::string& name) {
  if (!IsRecording(text)) return Invalid("'" + name + "' is no recording of MPI calls");
  if (text.size() < sizeof(FileHead)) {
    return Invalid("'" + name + "' is an MPI recording without a head: the process was killed");
  }
  Recording recording;
  recording.head = Take<FileHead>(text);
  RETURN_IF_ERROR(CheckHead(recording.head, text.size(), name));
  text.remove_prefix(recording.head.head_bytes);
  Parser parser(&recording);
  while (!text.empty()) {
    if (text.size() < sizeof(BlockHead)) {
      recording.cut = true;
      break;
    }
    const auto head = Take<BlockHead>(text);
    text.remove_prefix(sizeof(head));
    if (head.bytes > kLargestBlock || head.bytes > text.size()) {
      recording.cut = true;
      break;
    }
    parser.Block(head, text.substr(0, head.bytes));
    text.remove_prefix(head.bytes);
  }
  return recording;
}

Result<Recording> ReadRecording(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostBytes));
  return ParseRecording(text, path);
}

journal::JournalContents ToJournal(const Recording& recording) {
  journal::JournalContents contents;
  contents.version = journal::kFormatVersion;
  contents.host = recording.host;
  contents.pid = static_cast<int>(recording.head.pid);
  contents.started_ns = recording.head.loaded_ns;
  contents.dropped = recording.head.dropped + recording.head.over_limit;
  contents.ended = recording.head.ended != 0;
  contents.bad_lines = recording.bad_blocks;
  for (const RecordedComm& recorded : recording.comms) {
    journal::JournalComm comm;
    comm.number = recorded.facts.number;
    comm.id = recorded.facts.id;
    comm.library = Library::kOpenMpi;
    comm.shape = {recorded.facts.nodes, recorded.facts.ranks};
    comm.rank = recorded.facts.rank;
    comm.name = recorded.name;
    comm.created_ns = recorded.facts.created_ns;
    comm.ended_ns = recorded.facts.ended_ns;
    contents.by_number.emplace(comm.number, contents.communicators.size());
    contents.communicators.push_back(std::move(comm));
  }
  contents.records.reserve(recording.calls.size());
  for (const CallRecord& call : recording.calls) {
    journal::JournalRecord record;
    record.kind = journal::RecordKind::kRan;
    record.time_ns = call.start_ns;
    record.gpu_start_ns = call.start_ns;
    record.seconds = static_cast<double>(call.duration_ns) * 1e-9;
    record.bytes = call.bytes;
    record.communicator = call.communicator;
    record.sequence = call.sequence;
    record.collective = CodeOf(static_cast<MpiCall>(call.call));
    contents.records.push_back(record);
  }
  return contents;
}

}  // namespace diapason::mpi_record
