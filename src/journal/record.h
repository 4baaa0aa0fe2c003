#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "domain/decision.h"

namespace diapason::journal {

// The largest cost table a record can hold; NCCL's is 7 x 3, RCCL's up to 7 x 4.
inline constexpr int kTableCells = 40;

enum class RecordKind : uint8_t {
  kDecision = 0,  // a question and our answer
  kRan = 1,       // what the library then really ran, and how long it took
  kBypassed = 2,  // a collective was called and nobody was asked: the library took another path
  kReward = 3,    // what an agreed block of calls took, over all ranks
};

// kBypassed and kRan: a collective that no tuner is ever asked about, and that has no number.
inline constexpr uint8_t kNamelessCollective = 255;

// One thing that happened, as the job's threads write it: fixed size, no pointers, no text. Which
// fields mean something depends on the kind; docs/formats/journal.md has the list. The order saves
// room.
struct JournalRecord {
  uint64_t time_ns = 0;  // since 1970
  uint64_t bytes = 0;
  uint32_t communicator = 0;  // the process's number for it; a Communicator line says more
  uint32_t call = 0;          // the communicator's count of questions, from 1
  int32_t line = 0;           // of the policy; 0: none
  int32_t pipe_ops = 0;
  RecordKind kind = RecordKind::kDecision;
  uint8_t collective = 0;
  Reason reason = Reason::kNoRow;
  bool applied = false;  // false: nothing was changed
  int8_t reg_buff = 0;
  // What the policy, or what is learned, asked for. kRan: what ran. kReward: whose time it is.
  int8_t algorithm = kKeep;
  int8_t protocol = kKeep;
  // What the library would have taken by its table (with a chained tuner: by that tuner's answer).
  int8_t default_algorithm = kKeep;
  int8_t default_protocol = kKeep;
  bool captured = false;  // the call is part of a graph
  int16_t channels = 0;
  bool iteration = false;  // kReward: the time is a whole iteration's, not one call's
  // Decisions while learning, and rewards: the call's number in its context, and its epoch.
  bool learning = false;
  // The table as the library handed it over; 0 x 0 unless DIAPASON_JOURNAL_TABLES is on.
  uint8_t table_algorithms = 0;
  uint8_t table_protocols = 0;
  uint32_t epoch = 0;
  uint64_t index = 0;
  // kRan: the decision it belongs to is `call` (0: not known), the library's own number of the run
  // is `sequence`, the kernel's first start on the GPU's clock is `gpu_start_ns`, and `seconds` is
  // its time (0: not measured). kReward: `seconds` of one call or iteration, from `samples`
  // samples, the slowest rank's; `skew` is the slowest rank's time over the fastest's (1: none).
  uint64_t sequence = 0;
  uint64_t gpu_start_ns = 0;
  double seconds = 0;
  uint32_t samples = 0;
  float skew = 0;
  float table[kTableCells] = {};
};
static_assert(std::is_trivially_copyable_v<JournalRecord>);
static_assert(sizeof(JournalRecord) <= 256);

// What is fixed for a communicator, written once when it is created.
struct JournalComm {
  uint32_t number = 0;
  uint64_t id = 0;  // the library's commId; 0 before tuner API v5
  int api = 0;
  Library library = Library::kNccl;
  int library_version = 0;  // as ncclGetVersion has it; 0: unknown
  Shape shape;
  std::string mode;
  std::string policy;  // where it came from; empty: none in use
  std::string digest;
  size_t rows = 0;  // rows of the policy that can match here
  std::string chain;
  int rank = -1;      // -1: unknown, the profiler half is not loaded
  std::string name;   // the program's name for it; may be empty
  std::string store;  // where its ranks agree; empty: nowhere
  // What they agreed on: "learn", "static", or why not; empty: nothing to agree.
  std::string agreed;
};

// Of the whole file. A type of line that a reader does not know is a line it counts and leaves out,
// so new types do not change the version; a new meaning of what is there would.
inline constexpr int kFormatVersion = 1;

// One line of the journal each, without the line end. Numbers that need not fit a double (ids) are
// hexadecimal text.
std::string RecordLine(const JournalRecord& record, Library library);
std::string CommunicatorLine(const JournalComm& communicator);

// Text as JSON has it, quotes included.
std::string JsonText(const std::string& text);

}  // namespace diapason::journal
