#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "journal/reader.h"

namespace diapason::cli {

// Options of the `diapason journal` subcommands. Declared in journal.cc, implemented in
// journal_*.cc.

struct JournalShow {
  std::vector<std::string> files;
  bool calls = false;
  bool tables = false;
  bool learning = false;
  bool json = false;
};
Result<int> RunJournalShow(const JournalShow& asked);

struct JournalCheck {
  std::vector<std::string> files;
  bool json = false;
};
Result<int> RunJournalCheck(const JournalCheck& asked);

struct JournalProfile {
  std::vector<std::string> files;
  std::string side;  // "default", "policy"; "": all iterations
  bool json = false;
};
Result<int> RunJournalProfile(const JournalProfile& asked);

struct JournalCompare {
  std::vector<std::string> files;
  bool json = false;
};
Result<int> RunJournalCompare(const JournalCompare& asked);

struct JournalExport {
  std::vector<std::string> files;
  std::string format = "perfetto";
  std::string output;
};
Result<int> RunJournalExport(const JournalExport& asked);

// Reads a journal, and prints warnings about invalid lines and dropped records.
Result<journal::JournalContents> ReadWithWarnings(const std::string& file);
// Prints the whole content of the journals on standard output.
Result<int> ShowJournalsAsJson(const std::vector<std::string>& files);
// What was tried in each context, and the result. `all`: every epoch, not only the last ones.
std::string LearningText(const journal::JournalContents& contents, bool all);

}  // namespace diapason::cli
