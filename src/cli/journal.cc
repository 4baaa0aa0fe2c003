#include "cli/journal.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "base/text.h"
#include "cli/command.h"
#include "dataset/words.h"

namespace diapason::cli {

Result<journal::Contents> ReadWithWarnings(const std::string& file) {
  Result<journal::Contents> read = journal::ReadJournal(file);
  if (!read.ok()) return read;
  const journal::Contents& contents = read.value();
  if (contents.bad_lines > 0) {
    Warn(Format("%s: %s left out, the first is line %d: %s", file.c_str(),
                Count(contents.bad_lines, "line").c_str(), contents.first_bad_line,
                dataset::Printable(contents.first_bad_why).c_str()));
  }
  if (contents.dropped > 0) {
    Warn(Format("%s: %llu records were dropped while the job ran", file.c_str(),
                static_cast<unsigned long long>(contents.dropped)));
  }
  return read;
}

namespace {

void AddShow(CLI::App* journal, Run* run) {
  auto asked = std::make_shared<JournalShow>();
  CLI::App* command = journal->add_subcommand(
      "show", "What was asked for, what ran and why, counted by size and choice");
  command->add_option("FILE", asked->files, "Journal files")->required();
  command->add_flag("--calls", asked->calls, "Every call on a line of its own");
  CLI::Option* tables = command->add_flag("--tables", asked->tables,
                                          "The library's cost tables, for `diapason ask --table`");
  command
      ->add_flag("--learning", asked->learning, "What was tried, how long it took, what came out")
      ->excludes(tables);
  command->add_flag("--json", asked->json, "Print JSON")->excludes(tables);
  command->callback([asked, run] { *run = [asked] { return RunJournalShow(*asked); }; });
}

void AddCheck(CLI::App* journal, Run* run) {
  auto asked = std::make_shared<JournalCheck>();
  CLI::App* command = journal->add_subcommand(
      "check",
      "Compare the journals of all ranks of a job, call by call; exit status 1 where they differ");
  command->add_option("FILE", asked->files, "The journals of all ranks")->required();
  command->add_flag("--json", asked->json, "Print JSON");
  command->callback([asked, run] { *run = [asked] { return RunJournalCheck(*asked); }; });
}

void AddExport(CLI::App* journal, Run* run) {
  auto asked = std::make_shared<JournalExport>();
  CLI::App* command =
      journal->add_subcommand("export", "Write journals in a format of other programs");
  command->add_option("FILE", asked->files, "Journal files")->required();
  command
      ->add_flag("--perfetto", asked->perfetto, "A trace for ui.perfetto.dev and chrome://tracing")
      ->required();
  command->add_option("-o,--output", asked->output, "The file to write; -: standard output")
      ->required();
  command->callback([asked, run] { *run = [asked] { return RunJournalExport(*asked); }; });
}

}  // namespace

void AddJournal(CLI::App* parent, Run* run) {
  CLI::App* journal = parent->add_subcommand("journal", "Read the journals that jobs have written");
  journal->require_subcommand(1);
  AddShow(journal, run);
  AddCheck(journal, run);
  AddExport(journal, run);
}

}  // namespace diapason::cli
