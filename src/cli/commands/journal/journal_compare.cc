#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/commands/journal/journal.h"
#include "cli/framework/command.h"
#include "cli/framework/json_text.h"
#include "dataset/words.h"
#include "job_profile/turns.h"
#include "job_profile/turns_json.h"

namespace diapason::cli {
namespace {

using dataset::Printable;
using job_profile::Source;
using job_profile::TurnComparison;

void Print(const TurnComparison& compared) {
  PrintOut("{}\n", compared.Text());
  PrintOut(
      "iterations: {} with the default, {} with the policy, {} mixed, which are not compared\n",
      compared.default_iterations, compared.policy_iterations, compared.mixed_iterations);
  PrintOut("turns: changed over {} times; {}, iterations {}\n", compared.log_gains.size(),
           Printable(compared.rank),
           compared.source == Source::kSteps   ? "as the program marked them"
           : compared.source == Source::kCalls ? "not found: so many equal calls together"
                                               : "found in the order of calls");
}

}  // namespace

Result<int> RunJournalCompare(const JournalCompare& asked) {
  job_profile::TurnComparer comparer;
  for (const std::string& file : asked.files) {
    ASSIGN_OR_RETURN(const journal::JournalContents read, ReadWithWarnings(file));
    comparer.Add(file, read);
  }
  ASSIGN_OR_RETURN(const TurnComparison compared, comparer.Finish());
  if (asked.json) {
    PrintOut("{}\n", JsonText(job_profile::TurnComparisonJson(compared)));
  } else {
    Print(compared);
  }
  return kExitFine;
}

}  // namespace diapason::cli
