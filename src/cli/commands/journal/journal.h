#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "journal/reader.h"

namespace diapason::cli {

// `diapason journal ...`: what each subcommand was asked. Declared in journal.cc, done in
// journal_*.cc.

struct JournalShow {
  std::vector<std::string> files;
  bool calls = false;
  bool tables = false;
  bool learning = false;
  bool json = false;
};
int RunJournalShow(const JournalShow& asked);

struct JournalCheck {
  std::vector<std::string> files;
  bool json = false;
};
int RunJournalCheck(const JournalCheck& asked);

struct JournalExport {
  std::vector<std::string> files;
  std::string format = "perfetto";
  std::string output;
};
int RunJournalExport(const JournalExport& asked);

// Reads one, and warns about what is wrong with it.
Result<journal::JournalContents> ReadWithWarnings(const std::string& file);
// All that is in them, on standard output.
int ShowJournalsAsJson(const std::vector<std::string>& files);
// What was tried in each context, and what came out. `all`: every epoch, not only the last ones.
std::string LearningText(const journal::JournalContents& contents, bool all);

}  // namespace diapason::cli
