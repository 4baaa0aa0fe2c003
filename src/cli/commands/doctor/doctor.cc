#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/doctor/doctor_report.h"
#include "cli/commands/ranks.h"
#include "cli/framework/command_line.h"
#include "cli/framework/findings.h"
#include "diapason/comm.h"
#include "doctor/checks.h"
#include "doctor/this_machine.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

struct DoctorAsked {
  bool json = false;
  bool all = false;
  bool test = false;
  bool no_test = false;
  std::string root = "/";
  std::string library_file;
  int pid = 0;
  std::string output;
  bool quiet = false;
  std::vector<std::string> reports;
};

std::string DoctorText(const doctor::CheckInputs& facts, const std::vector<Finding>& findings,
                       const std::vector<doctor::ChecklistItem>& checklist, bool all) {
  std::string text;
  for (const std::string& line : doctor::DescribeMachine(facts)) text += line + "\n";
  text += "\n" + FindingsText(findings, all);
  if (!facts.test.goals.empty()) {
    report::Table goals({"goal", "what", "wanted", "median", "[95 %] or (range)", "verdict"});
    for (const doctor::GoalResult& goal : facts.test.goals) {
      goals.Add({goal.name, goal.what, goal.goal, goal.value, goal.interval, goal.verdict});
    }
    text += "\n" + goals.Text();
  }
  report::Table table({"", "checklist", "because"});
  for (const doctor::ChecklistItem& item : checklist) {
    table.Add({std::string(doctor::StateName(item.state)), item.text, item.because});
    if (item.state == doctor::ChecklistItem::State::kNotOk) {
      table.SetTone(0, report::Table::Tone::kBad);
    } else if (item.state == doctor::ChecklistItem::State::kOk) {
      table.SetTone(0, report::Table::Tone::kGood);
    }
  }
  text += "\n" + table.Text() + "\n" + FindingsSummary(findings) + "\n";
  return text;
}

// Names the missing folder: the temporary file that is written first has another name.
Status WriteReport(const std::string& path, const std::string& json) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored)) {
    return NotFound("cannot write '" + path + "': there is no folder '" + folder.string() + "'");
  }
  return WriteFileAtomically(path, json).WithContext("writing the report '" + path + "'");
}

Result<int> Examine(const DoctorAsked& asked) {
  const RootFs tree(asked.root);
  if (!tree.live() && !tree.IsFolder("/")) {
    return NotFound(asked.root + ": no such folder");
  }
  // The environment here says nothing about another machine.
  const MapEnvironment nothing{std::map<std::string, std::string>{}};
  if (!asked.library_file.empty()) {
    RankOptions named;
    named.library_file = asked.library_file;
    RETURN_IF_ERROR(UseJobLibrary(named));
  }
  doctor::CheckInputs facts =
      tree.live() ? doctor::GatherThisMachine() : doctor::GatherFacts(tree, nothing);
  if (!asked.library_file.empty()) facts.job.because = "--library-file names it";
  if (tree.live()) {
    if (asked.test || (!asked.no_test && facts.machine.gpus.size() >= 2)) {
      if (!asked.quiet) Progress("running a short test of collectives");
      facts.test = RunShortTest(facts.machine);
    }
  }
  const std::vector<Finding> findings = doctor::CheckEverything(facts);
  const std::vector<doctor::ChecklistItem> checklist = doctor::MakeChecklist(facts);
  const std::string json =
      asked.json || !asked.output.empty() ? DoctorJson(facts, findings, checklist) : "";
  const std::string text = asked.json ? json : DoctorText(facts, findings, checklist, asked.all);
  WriteOut(text);
  if (!asked.output.empty()) {
    RETURN_IF_ERROR(WriteReport(asked.output, json));
  }
  return ExitStatusOf(findings);
}

Result<int> RunDoctor(const DoctorAsked& asked) {
  if (!asked.library_file.empty() && !asked.test)
    return ShowLibrary(asked.root, asked.library_file, asked.json);
  if (asked.pid > 0) return ShowProcess(asked.root, asked.pid, asked.json, asked.all);
  return Examine(asked);
}

}  // namespace

void AddDoctor(CommandLine* parent, CommandAction* run) {
  auto asked = std::make_shared<DoctorAsked>();
  CommandLine* command = parent->AddCommand(
      "doctor",
      "Find problems of this machine that affect collectives: GPUs, links, network, libraries");
  command->Describe(
      "Needs neither root nor a GPU. docs/commands/doctor.md explains every finding.");
  Option* root =
      command
          ->AddOption(
              "--root", asked->root,
              "Examine the files below this folder instead of this machine; nothing is executed")
          ->TypeName("DIR");
  Option* test =
      command->AddFlag("--test", asked->test,
                       "Run the short test of collectives (by default only with two GPUs or more)");
  test->Excludes(root);
  command->AddFlag("--no-test", asked->no_test, "Do not run the short test of collectives")
      ->Excludes(test);
  Option* library = command
                        ->AddOption("--library-file", asked->library_file,
                                    "Only show which library this libnccl or librccl file is and "
                                    "which plugins it would load; with --test, examine this "
                                    "machine for a job that uses it")
                        ->TypeName("FILE");
  Option* pid =
      command->AddOption("--pid", asked->pid, "Examine a running process instead of the machine")
          ->TypeName("PID")
          ->Check(Range(1, 4194304))
          ->Excludes(library)
          ->Excludes(test);
  command->Heading("Output");
  command->AddFlag("--all", asked->all, "Also show checks that found nothing");
  command->AddOutput(asked->output, "File to write the JSON report to, in addition to the output")
      ->Excludes(pid);
  command->AddJson(asked->json, "Print JSON: every fact, finding and checklist line");
  command->AddQuiet(asked->quiet);
  command->Heading("");
  command->Example("diapason doctor", "Examine this machine");
  command->Example("srun -N 16 sh -c 'diapason doctor -q -o $(hostname).json'",
                   "Examine sixteen hosts, for `doctor compare`");
  command->Judges();
  command->SeeAlso({"env-check", "backends", "watch"});
  command->Callback([asked, command, run] {
    // A subcommand has already set the action.
    if (command->CommandGiven()) return;
    *run = [asked] { return RunDoctor(*asked); };
  });

  CommandLine* compare = command->AddCommand(
      "compare", "Compare the reports of many hosts and name the hosts that differ");
  compare->AddOption("FILE", asked->reports, "Reports written by `diapason doctor -o FILE`")
      ->Required();
  compare->AddFlag("--all", asked->all, "Also show what is the same on all hosts");
  compare->AddJson(asked->json);
  compare->Example("diapason doctor compare *.json", "Find the hosts that differ from the others");
  compare->Judges();
  compare->Callback([asked, run] {
    if (asked->reports.size() < 2) {
      throw UsageError{"", "nothing to compare: give at least two reports"};
    }
    *run = [asked] { return CompareReports(asked->reports, asked->json, asked->all); };
  });
}

}  // namespace diapason::cli
