#include <memory>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/logs/logs_report.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/findings.h"
#include "logs/diagnose.h"
#include "logs/reader.h"

namespace diapason::cli {
namespace {

struct LogsOptions {
  std::vector<std::string> paths;
  std::vector<std::string> sections;
  bool all = false;
  bool json = false;
};

Result<int> RunLogs(const LogsOptions& options) {
  logs::LogFacts facts;
  std::vector<std::string> warnings;
  const Status status = logs::ReadLogs(options.paths, &facts, &warnings);
  for (const std::string& warning : warnings) Warn(warning);
  if (!status.ok()) return status;
  const logs::Diagnosis diagnosis = logs::DiagnoseJob(facts);
  if (options.json) {
    PrintOut("{}\n", LogsJson(options.sections, facts, diagnosis));
    return ExitStatusOf(diagnosis.findings);
  }
  // Without a choice: what happened and why. The tables are for a closer look.
  std::vector<std::string> sections = options.sections;
  if (options.all) {
    sections = LogSections();
  } else if (sections.empty()) {
    sections = {"verdict", "findings"};
  }
  bool first = true;
  for (const std::string& section : sections) {
    const std::string text = LogSectionText(section, facts, diagnosis);
    if (text.empty()) continue;
    PrintOut("{}{}", first ? "" : "\n", text);
    first = false;
  }
  return ExitStatusOf(diagnosis.findings);
}

}  // namespace

void AddLogs(CommandLine* parent, CommandAction* run) {
  auto options = std::make_shared<LogsOptions>();
  CommandLine* command =
      parent->AddCommand("logs", "Find out from the logs of all ranks why a job failed or is slow");
  command
      ->AddOption("FILE", options->paths,
                  "Logs of NCCL, RCCL, nccl-tests or PyTorch; a folder for all its files; - for "
                  "standard input")
      ->Required();
  command
      ->AddOption(
          "--section", options->sections,
          "Show this section instead of the verdict and the findings: " + Join(LogSections(), ", "))
      ->TypeName("NAME")
      ->Check(OneOf(LogSections()))
      ->OneEach();
  command->AddFlag("--all", options->all, "Show all sections");
  command->AddJson(options->json);
  command->Example("diapason logs job-logs/", "Analyse all files of a folder");
  command->Example("diapason logs --all job.*.log", "Show ranks, connections and choices, too");
  command->Judges();
  command->SeeAlso({"watch", "proxy-dump", "env-check"});
  command->Callback([options, run] { *run = [options] { return RunLogs(*options); }; });
}

}  // namespace diapason::cli
