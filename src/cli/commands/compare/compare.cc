#include "cli/commands/compare/compare.h"

#include <memory>
#include <optional>

#include "base/file.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/read_by.h"
#include "compare/comparison.h"

namespace diapason::cli {

void AddComparisonOptions(CommandLine* command, ComparisonOutput* output) {
  command
      ->AddOption("--fail-on", output->fail_on,
                  "Exit with 3 if a call is slower by more than this share beyond doubt")
      ->TypeName("SHARE")
      ->Check(ShareOf("--fail-on"));
  command->AddOption("--threshold", output->threshold, "Share within which a change counts as none")
      ->TypeName("SHARE")
      ->Check(ShareOf("--threshold"))
      ->Default("that of --fail-on, else 5%");
  command->AddOption("--junit", output->junit, "File to write the verdicts to, in JUnit's format")
      ->TypeName("FILE");
}

Result<compare::CompareOptions> ReadComparisonOptions(const ComparisonOutput& output) {
  compare::CompareOptions options;
  if (!output.fail_on.empty()) {
    ASSIGN_OR_RETURN(const double share, ParseShare(output.fail_on, "--fail-on"));
    options.fail_on = share;
    if (share > 0) options.threshold = share;
  }
  if (!output.threshold.empty()) {
    ASSIGN_OR_RETURN(options.threshold, ParseShare(output.threshold, "--threshold"));
  }
  return options;
}

Result<int> PrintComparison(const compare::Comparison& comparison, const ComparisonOutput& output) {
  if (output.json) {
    PrintOut("{}\n", compare::ComparisonJson(comparison));
  } else {
    PrintOut("{}", output.markdown ? compare::ComparisonMarkdown(comparison)
                                   : compare::ComparisonText(comparison));
  }
  if (!output.junit.empty()) {
    RETURN_IF_ERROR(WriteFileAtomically(output.junit, compare::ComparisonJunit(comparison)));
  }
  return comparison.Failing() > 0 ? kExitWarnings : kExitFine;
}

namespace {

struct Asked {
  std::string before;
  std::string after;
  std::vector<std::string> more_before;
  std::vector<std::string> more_after;
  ComparisonOutput output;
};

std::vector<std::string> PathsOf(const std::string& first, std::vector<std::string> more) {
  if (!first.empty()) more.insert(more.begin(), first);
  return more;
}

Result<int> RunCompare(const Asked& asked) {
  ASSIGN_OR_RETURN(const compare::CompareOptions options, ReadComparisonOptions(asked.output));
  Result<compare::Side> before = compare::ReadSide(PathsOf(asked.before, asked.more_before));
  if (!before.ok()) return before.status().WithContext("old");
  Result<compare::Side> after = compare::ReadSide(PathsOf(asked.after, asked.more_after));
  if (!after.ok()) return after.status().WithContext("new");
  const compare::Comparison comparison = compare::Compare(before.value(), after.value(), options);
  if (comparison.calls.empty()) {
    Warn("no call is on both sides");
  }
  ASSIGN_OR_RETURN(const int status, PrintComparison(comparison, asked.output));
  return comparison.calls.empty() ? kExitFailed : status;
}

}  // namespace

void AddCompare(CommandLine* parent, CommandAction* run) {
  auto asked = std::make_shared<Asked>();
  CommandLine* command = parent->AddCommand(
      "compare", "Compare old and new measurements: which calls became slower or faster");
  command->Describe(
      "OLD and NEW are files or folders, each recognised by its content: stores of `bench`, "
      "`sweep` and `tune`, logs and JSON of nccl-tests and rccl-tests, dumps of NCCL Inspector, "
      "and "
      "journals of jobs. Several launches on each side say how much launches differ by "
      "themselves; docs/commands/compare.md describes how verdicts are found.");
  command->AddOption("OLD", asked->before, "File or folder with the old measurements")
      ->TypeName("OLD");
  command->AddOption("NEW", asked->after, "File or folder with the new measurements")
      ->TypeName("NEW");
  command->AddOption("--old", asked->more_before, "Further file or folder of the old side")
      ->TypeName("FILE")
      ->OneEach();
  command->AddOption("--new", asked->more_after, "Further file or folder of the new side")
      ->TypeName("FILE")
      ->OneEach();
  AddComparisonOptions(command, &asked->output);
  Option* json = command->AddJson(asked->output.json);
  command
      ->AddFlag("--markdown", asked->output.markdown, "Print Markdown, for a comment in a review")
      ->Excludes(json);
  command->Example("diapason compare before.db after.db");
  command->Example("diapason compare old/ new/ --fail-on 5% --junit compare.xml",
                   "Fail where a call is slower by more than 5 %");
  command->ExitStatus(kExitFailed, "the input is invalid, or no call is on both sides");
  command->ExitStatus(kExitWarnings, "a call is slower by more than --fail-on beyond doubt");
  command->SeeAlso({"bench", "sweep", "report"});
  command->Callback([asked, run] {
    if (PathsOf(asked->before, asked->more_before).empty()) {
      throw UsageError{"OLD", "name the old measurements"};
    }
    if (PathsOf(asked->after, asked->more_after).empty()) {
      throw UsageError{"NEW", "name the new measurements"};
    }
    *run = [asked] { return RunCompare(*asked); };
  });
}

}  // namespace diapason::cli
