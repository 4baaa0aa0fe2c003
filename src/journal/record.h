#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "domain/decision.h"

namespace diapason::journal {

// The largest cost table a record can hold; NCCL's is 7 x 3, RCCL's up to 7 x 4.
inline constexpr int kTableCells = 40;

// One answered question, as the decision path writes it: fixed size, no pointers, no text.
struct Record {
  uint64_t time_ns = 0;  // since 1970
  uint64_t bytes = 0;
  uint32_t communicator = 0;  // the process's number for it; a Communicator line says more
  uint32_t call = 0;          // the communicator's count of questions, from 1
  int32_t line = 0;           // of the policy; 0: none
  int32_t pipe_ops = 0;
  uint8_t collective = 0;
  Reason reason = Reason::kNoRow;
  bool applied = false;  // false: nothing was changed
  int8_t reg_buff = 0;
  // What the policy asked for.
  int8_t algorithm = kKeep;
  int8_t protocol = kKeep;
  int16_t channels = 0;
  // What the library would have taken by its table (with a chained tuner: by that tuner's answer).
  int8_t default_algorithm = kKeep;
  int8_t default_protocol = kKeep;
  // The table as the library handed it over; 0 x 0 unless DIAPASON_JOURNAL_TABLES is on.
  uint8_t table_algorithms = 0;
  uint8_t table_protocols = 0;
  float table[kTableCells] = {};
};
static_assert(std::is_trivially_copyable_v<Record>);

// What is fixed for a communicator, written once when it is created.
struct Communicator {
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
};

inline constexpr int kFormatVersion = 1;

// One line of the journal each, without the line end. Numbers that need not fit a double (ids) are
// hexadecimal text.
std::string RecordLine(const Record& record, Library library);
std::string CommunicatorLine(const Communicator& communicator);

// Text as JSON has it, quotes included.
std::string JsonText(const std::string& text);

}  // namespace diapason::journal
