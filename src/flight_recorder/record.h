#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"

namespace diapason::flight_recorder {

inline constexpr uint32_t kNoIndex = UINT32_MAX;

// How far a rank is with an operation, as the recorder saw it. Without TORCH_NCCL_ENABLE_TIMING
// the recorder never sees that an operation has started: it goes from scheduled to completed.
enum class State : uint8_t { kScheduled, kStarted, kCompleted };

// What was called, without group and sequence number. Equal calls are stored once.
struct Call {
  std::string operation;  // "all_reduce", without the name of the backend
  std::string inputs;     // "[4096,128]", "[16], [16]"
  std::string outputs;
  std::string input_types;  // "Float"
  std::string output_types;
  int64_t input_elements = -1;  // of all tensors together; -1: unknown
  int64_t output_elements = -1;

  std::string Text() const;  // "all_reduce [4096,128] Float"
};

// One operation of one rank.
struct Entry {
  int64_t record = 0;          // the order of calls on this rank
  int64_t sequence = -1;       // of the group's collectives
  int64_t p2p_sequence = -1;   // of the group's sends and receives on this rank
  int64_t created_ns = 0;      // 0: unknown
  uint32_t group = kNoIndex;   // FlightRecord::groups
  uint32_t call = kNoIndex;    // FlightRecord::calls
  uint32_t frames = kNoIndex;  // FlightRecord::frames
  // The numbers in "send 0->3", as they stand there; -1 for none.
  int32_t number_from = -1;
  int32_t number_to = -1;
  State state = State::kScheduled;
  bool p2p = false;
};

// A process group: a name and its members. Groups that share a name but not their members differ.
struct Group {
  std::string name;
  std::string description;     // "default_pg"
  std::vector<int64_t> ranks;  // sorted; empty if no dump lists them

  std::string Text() const;  // "group 4 (pp)"
};

// The last sequence numbers of a group by the recorder's own count; -1: none. Sends and receives
// count in it as well as collectives.
struct GroupStatus {
  uint32_t group = kNoIndex;
  int64_t enqueued = -1;
  int64_t started = -1;
  int64_t completed = -1;
};

// The dump of one rank.
struct Dump {
  int64_t rank = -1;
  std::string name;              // of the file
  std::string version;           // of the format, "2.10"
  std::vector<Entry> entries;    // in the order of calls
  std::vector<uint32_t> groups;  // those of which this rank is a member
  std::vector<GroupStatus> status;
  std::vector<GroupStatus> unknown_status;  // of groups that the dump does not name
  bool truncated = false;                   // the file breaks off: entries are missing at the end
};

// Distinct texts by number; at most `limit`, then kNoIndex.
class TextTable {
 public:
  explicit TextTable(size_t limit) : limit_(limit) {}
  uint32_t Id(const std::string& text);
  const std::string& operator[](uint32_t id) const;  // "" for kNoIndex

 private:
  size_t limit_;
  std::vector<std::string> texts_;
  std::unordered_map<std::string, uint32_t> ids_;
};

// The dumps of a job. Every table has a limit, so that hostile files need bounded memory; what is
// beyond is counted as left out. Not safe for use by several threads.
class FlightRecord {
 public:
  static constexpr size_t kMostDumps = 16384;
  static constexpr size_t kMostGroups = 65536;
  static constexpr size_t kMostMembers = 4 << 20;  // of all groups together
  static constexpr size_t kMostCalls = 65536;
  static constexpr size_t kMostEntriesOfDump = 65536;  // the newest
  static constexpr size_t kMostEntries = 4 << 20;

  std::vector<Dump> dumps;  // by rank after AddDump
  std::vector<Group> groups;
  std::vector<Call> calls;
  TextTable frames{65536};
  uint64_t entries = 0;  // read, those left out included
  uint64_t entries_left_out = 0;
  std::vector<std::string> twice;  // files of ranks that have another dump with more entries

  // The number of the group, new or known; kNoIndex if the table is full. `ranks` is sorted.
  uint32_t GroupId(const std::string& name, const std::string& description,
                   const std::vector<int64_t>& ranks);
  uint32_t CallId(const Call& call);
  // Of two dumps of one rank the one with more entries is kept.
  void AddDump(Dump dump);
  const Dump* Find(int64_t rank) const;
  const std::string& Operation(const Entry& entry) const;
  std::string CallText(const Entry& entry) const;

 private:
  std::unordered_map<std::string, uint32_t> group_ids_;
  std::unordered_map<std::string, uint32_t> call_ids_;
  std::unordered_map<int64_t, size_t> dump_of_;
  size_t members_ = 0;
  size_t kept_ = 0;
};

}  // namespace diapason::flight_recorder
