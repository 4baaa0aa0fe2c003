#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "journal/record.h"

namespace diapason::journal {

// A journal file, read back. Every line is validated: lines that cannot be parsed are counted,
// never guessed.
struct JournalContents {
  int version = 0;
  std::string host;
  int pid = 0;
  std::string diapason;     // the version that wrote it; may be empty
  uint64_t started_ns = 0;  // since 1970; 0: not said
  std::vector<JournalComm> communicators;
  std::vector<JournalRecord> records;  // of communicators: no steps
  std::vector<uint64_t> steps;         // when iterations ended, as the program said; since 1970
  uint64_t dropped = 0;                // as the writer counted
  bool ended = false;                  // the process closed the file
  size_t bad_lines = 0;
  int first_bad_line = 0;  // from 1
  std::string first_bad_why;

  std::map<uint32_t, size_t> by_number;  // into communicators

  // The communicator a record belongs to, or nullptr.
  const JournalComm* Find(uint32_t number) const;
};

Result<JournalContents> ReadJournal(const std::string& path);
// Its whole lines among the first `most_bytes`.
Result<JournalContents> ReadJournalHead(const std::string& path, size_t most_bytes);
// The same from text; for tests and fuzzing.
Result<JournalContents> ParseJournal(std::string_view text, const std::string& name);

}  // namespace diapason::journal
