#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "domain/decision.h"

namespace diapason::journal {

// The largest cost table a record can hold; NCCL's is 7 x 3, RCCL's up to 7 x 4.
inline constexpr int kTableCells = 40;

enum class RecordKind : uint8_t {
  kDecision = 0,  // a question and the answer
  kRan = 1,       // the configuration that ran, and its duration
  kBypassed = 2,  // a collective that ran without a question to the tuner
  kReward = 3,    // the time of an agreed block of calls, over all ranks
  kStep = 4,      // an iteration of the program has ended: only time_ns is valid
};

// kBypassed and kRan: a collective that a tuner is never asked about, and that has no number.
inline constexpr uint8_t kNamelessCollective = 255;

// One event, as the job's threads write it: fixed size, no pointers, no text. Which fields are
// valid depends on the kind; docs/formats/journal.md has the list. The order of members avoids
// padding.
struct JournalRecord {
  uint64_t time_ns = 0;  // since 1970
  uint64_t bytes = 0;
  uint32_t communicator = 0;  // number within the process; a Communicator line has the details
  uint32_t call = 0;          // the communicator's number of the question, from 1
  int32_t line = 0;           // of the policy; 0: none
  int32_t pipe_ops = 0;
  RecordKind kind = RecordKind::kDecision;
  uint8_t collective = 0;
  Reason reason = Reason::kNoRow;
  bool applied = false;  // false: nothing was changed
  int8_t reg_buff = 0;
  // The configuration wanted by the policy or by learning. kRan: the one that ran. kReward: the one
  // measured.
  int8_t algorithm = kKeep;
  int8_t protocol = kKeep;
  // The library's own choice by its table (with a chained tuner: by that tuner's answer).
  int8_t default_algorithm = kKeep;
  int8_t default_protocol = kKeep;
  bool captured = false;  // the call is part of a graph
  int16_t channels = 0;
  // kDecision: the calls of its group on this communicator; 0: not known.
  uint16_t group_calls = 0;
  bool iteration = false;  // kReward: the time of a whole iteration, not of one call
  // Decisions while learning, and rewards: the call's number in its context, and its epoch.
  bool learning = false;
  // The library's cost table; 0 x 0 unless DIAPASON_JOURNAL_TABLES is on.
  uint8_t table_algorithms = 0;
  uint8_t table_protocols = 0;
  uint32_t epoch = 0;
  uint64_t index = 0;
  // kRan: `call` is the decision it belongs to (0: unknown), `sequence` the library's number of the
  // run, `gpu_start_ns` the kernel's first start on the GPU's clock, `seconds` its duration (0: not
  // measured). kReward: `seconds` of one call or iteration, from `samples` samples of the slowest
  // rank; `skew` is the slowest rank's time over the fastest's (1: none).
  uint64_t sequence = 0;
  uint64_t gpu_start_ns = 0;
  double seconds = 0;
  uint32_t samples = 0;
  float skew = 0;
  float table[kTableCells] = {};
};
static_assert(std::is_trivially_copyable_v<JournalRecord>);
static_assert(sizeof(JournalRecord) <= 256);

// The properties of a communicator, written at init, and again with `ended_ns` when it ends.
struct JournalComm {
  uint32_t number = 0;
  uint64_t id = 0;  // the library's commId; 0 before tuner API v5
  int api = 0;
  Library library = Library::kNccl;
  int library_version = 0;  // as ncclGetVersion reports it; 0: unknown
  Shape shape;
  std::string mode;
  std::string policy;  // its source; empty: none in use
  std::string digest;
  size_t rows = 0;  // rows of the policy that can match here
  std::string chain;
  int rank = -1;      // -1: unknown, the profiler half is not loaded
  std::string name;   // the program's name for it; may be empty
  std::string store;  // where its ranks agree; empty: nowhere
  // The result of the agreement: "learn", "static", or why not; empty: none was needed.
  std::string agreed;
  uint64_t created_ns = 0;  // since 1970; 0: not said
  uint64_t ended_ns = 0;    // 0: it lived until the process ended, or the journal does not say
};

// Of the whole file. A reader counts and skips unknown types of lines, so new types do not change
// the version; a new meaning of existing fields would.
inline constexpr int kFormatVersion = 1;

// One line of the journal each, without the line end. Numbers that may not fit a double (ids) are
// hexadecimal text.
std::string RecordLine(const JournalRecord& record, Library library);
std::string CommunicatorLine(const JournalComm& communicator);

}  // namespace diapason::journal
