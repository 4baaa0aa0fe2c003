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
  bool json = false;
};

Result<int> RunLogs(const LogsOptions& options) {
  logs::LogFacts facts;
  std::vector<std::string> warnings;
  const Status status = logs::ReadLogs(options.paths, &facts, &warnings);
  for (const std::string& warning : warnings) Warn(warning);
  if (!status.ok()) return status;
  const std::vector<Finding> findings = logs::Diagnose(facts);
  if (options.json) {
    PrintOut("{}\n", LogsJson(options.sections, facts, findings));
    return ExitStatusOf(findings);
  }
  bool first = true;
  for (const std::string& section : options.sections.empty() ? LogSections() : options.sections) {
    const std::string text = LogSectionText(section, facts, findings);
    if (text.empty()) continue;
    PrintOut("{}{}", first ? "" : "\n", text);
    first = false;
  }
  return ExitStatusOf(findings);
}

}  // namespace

void AddLogs(CommandLine* parent, CommandAction* run) {
  auto options = std::make_shared<LogsOptions>();
  CommandLine* command =
      parent->AddCommand("logs", "Analyse the logs of all ranks together and report problems");
  command
      ->AddOption("FILE", options->paths,
                  "Logs of NCCL, RCCL, nccl-tests or PyTorch; a folder for all its files; - for "
                  "standard input")
      ->Required();
  command
      ->AddOption("--section", options->sections,
                  "Show only this section: " + Join(LogSections(), ", "))
      ->TypeName("NAME")
      ->Check(OneOf(LogSections()))
      ->OneEach();
  command->AddJson(options->json);
  command->Example("diapason logs job-logs/", "Analyse all files of a folder");
  command->Example("diapason logs --section findings job.*.log", "Show only the problems");
  command->Judges();
  command->SeeAlso({"watch", "proxy-dump", "env-check"});
  command->Callback([options, run] { *run = [options] { return RunLogs(*options); }; });
}

}  // namespace diapason::cli
