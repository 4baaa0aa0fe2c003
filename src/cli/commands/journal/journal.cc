#include "cli/commands/journal/journal.h"

#include <memory>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/framework/command_line.h"
#include "dataset/words.h"

namespace diapason::cli {

Result<journal::JournalContents> ReadWithWarnings(const std::string& file) {
  ASSIGN_OR_RETURN(journal::JournalContents read, journal::ReadJournal(file));
  const journal::JournalContents& contents = read;
  if (contents.bad_lines > 0) {
    Warn(Format("{}: {} left out, the first is line {}: {}", file,
                Count(contents.bad_lines, "line"), contents.first_bad_line,
                dataset::Printable(contents.first_bad_why)));
  }
  if (contents.dropped > 0) {
    Warn(Format("{}: {} records were dropped while the job ran", file, contents.dropped));
  }
  return read;
}

namespace {

void AddShow(CommandLine* journal, CommandAction* run) {
  auto asked = std::make_shared<JournalShow>();
  CommandLine* command = journal->AddCommand(
      "show", "Show what was requested, what ran and why, counted by size and choice");
  command->AddOption("FILE", asked->files, "Journal files to read")->Required();
  command->AddFlag("--calls", asked->calls, "Show every call on a line of its own");
  Option* tables = command->AddFlag("--tables", asked->tables,
                                    "Print the library's cost tables, for `diapason ask --table`");
  command
      ->AddFlag("--learning", asked->learning,
                "Show what learning tried, how long it took, and the result")
      ->Excludes(tables);
  command->AddJson(asked->json)->Excludes(tables);
  command->AddFormat();
  command->Example("diapason journal show j.*", "Show all ranks of a job together");
  command->Example("diapason journal show --learning j.node7.4711", "Show what one rank has tried");
  command->Callback([asked, run] { *run = [asked] { return RunJournalShow(*asked); }; });
}

void AddCheck(CommandLine* journal, CommandAction* run) {
  auto asked = std::make_shared<JournalCheck>();
  CommandLine* command =
      journal->AddCommand("check", "Compare the journals of all ranks of a job, call by call");
  command->AddOption("FILE", asked->files, "Journals of all ranks of one job")->Required();
  command->AddJson(asked->json);
  command->AddFormat();
  command->Example("diapason journal check j.*",
                   "Check whether all ranks ran the same configurations");
  command->ExitStatus(kExitFine, "all ranks ran the same configurations");
  command->ExitStatus(kExitFailed, "ranks differ, or a journal cannot be read");
  command->Callback([asked, run] { *run = [asked] { return RunJournalCheck(*asked); }; });
}

void AddProfile(CommandLine* journal, CommandAction* run) {
  auto asked = std::make_shared<JournalProfile>();
  CommandLine* command = journal->AddCommand(
      "profile", "Show a job's iterations, and how much of them its collectives take");
  command->Describe(
      "Needs the GPU times of calls: start the job with DIAPASON_JOURNAL=j.%h.%p and "
      "DIAPASON_JOURNAL_TIMES=1, and with both halves of the plugin. Iterations are those that the "
      "program marks with diapason_step(); without it they are found in the order of its calls. "
      "Exposed time, which is not hidden behind compute, is an estimate.");
  command->Describe(
      "Of an MPI program it reads the recordings of its calls (`diapason run --observe "
      "--journal-dir DIR`), and says what Open MPI's rules can change of the time.");
  command->AddOption("FILE", asked->files, "Journals of all ranks of one job")->Required();
  command
      ->AddOption("--side", asked->side,
                  "Of a job that ran the default and a policy in turns: only the iterations of one "
                  "of the two")
      ->TypeName("WORD")
      ->Check(OneOf({"default", "policy"}));
  command->AddJson(asked->json);
  command->AddFormat();
  command->Example("diapason journal profile j.*",
                   "Show where the time of a job's iterations goes");
  command->Example("diapason journal profile --side policy j.*",
                   "Show where it goes while a job that compares runs its policy");
  command->Callback([asked, run] { *run = [asked] { return RunJournalProfile(*asked); }; });
}

void AddJournalCompare(CommandLine* journal, CommandAction* run) {
  auto asked = std::make_shared<JournalCompare>();
  CommandLine* command = journal->AddCommand(
      "compare", "Compare the iterations of a job that ran the default and a policy in turns");
  command->Describe(
      "For jobs with DIAPASON_MODE=compare; `diapason run --compare` starts one and prints the "
      "same "
      "at its end. An iteration counts if all of its calls that a row of the policy matches ran in "
      "turns of one of the two.");
  command->AddOption("FILE", asked->files, "Journals of all ranks of one job")->Required();
  command->AddJson(asked->json);
  command->Example("diapason journal compare j.*", "Show how much faster a job is with a policy");
  command->Callback([asked, run] { *run = [asked] { return RunJournalCompare(*asked); }; });
}

void AddExport(CommandLine* journal, CommandAction* run) {
  auto asked = std::make_shared<JournalExport>();
  CommandLine* command =
      journal->AddCommand("export", "Write journals in the format of another program");
  command->AddOption("FILE", asked->files, "Journal files to read")->Required();
  command
      ->AddOption("--format", asked->format,
                  "Output format. perfetto: a trace for ui.perfetto.dev and chrome://tracing")
      ->TypeName("WORD")
      ->Check(OneOf({"perfetto"}))
      ->ShowDefault();
  command->AddOption("-o,--output", asked->output, "File to write; - for standard output")
      ->TypeName("FILE")
      ->Required();
  command->Example("diapason journal export j.* -o trace.json",
                   "Write a trace to open in ui.perfetto.dev");
  command->Callback([asked, run] { *run = [asked] { return RunJournalExport(*asked); }; });
}

}  // namespace

void AddJournal(CommandLine* parent, CommandAction* run) {
  CommandLine* journal =
      parent->AddCommand("journal", "Show, check and export the journals that jobs have written");
  journal->Describe(
      "A job with DIAPASON_JOURNAL=j.%h.%p writes every decision of every rank to a journal; "
      "docs/formats/journal.md describes the files.");
  journal->Example("diapason journal show j.*", "Show what a job has run");
  journal->RequireCommand();
  journal->SeeAlso({"ask", "watch"});
  AddShow(journal, run);
  AddCheck(journal, run);
  AddProfile(journal, run);
  AddJournalCompare(journal, run);
  AddExport(journal, run);
}

}  // namespace diapason::cli
