#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/commands/journal/journal.h"
#include "cli/framework/command.h"
#include "cli/framework/json_text.h"
#include "dataset/words.h"
#include "job_profile/turns.h"

namespace diapason::cli {
namespace {

using dataset::Printable;
using job_profile::Source;
using job_profile::TurnComparison;
using nlohmann::ordered_json;

void Print(const TurnComparison& compared) {
  PrintOut("{}\n", compared.Text());
  PrintOut(
      "iterations: {} with the default, {} with the policy, {} mixed, which are not compared\n",
      compared.default_iterations, compared.policy_iterations, compared.mixed_iterations);
  PrintOut("turns: changed over {} times; {}, iterations {}\n", compared.log_gains.size(),
           Printable(compared.rank),
           compared.source == Source::kSteps ? "as the program marked them"
                                             : "found in the order of calls");
}

ordered_json ComparisonJson(const TurnComparison& compared) {
  ordered_json json = {{"verdict", compared.Verdict()},
                       {"decided", compared.Decided()},
                       {"rank", compared.rank},
                       {"default_iterations", compared.default_iterations},
                       {"policy_iterations", compared.policy_iterations},
                       {"mixed_iterations", compared.mixed_iterations},
                       {"default_us", compared.default_seconds * 1e6},
                       {"policy_us", compared.policy_seconds * 1e6},
                       {"changes", compared.log_gains.size()},
                       {"log_gains", compared.log_gains}};
  if (compared.Decided()) {
    json["gain"] = compared.gain;
    json["low"] = compared.low;
    json["high"] = compared.high;
  }
  if (!compared.trouble.empty()) json["note"] = compared.trouble;
  return json;
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
    PrintOut("{}\n", JsonText(ComparisonJson(compared)));
  } else {
    Print(compared);
  }
  return kExitFine;
}

}  // namespace diapason::cli
