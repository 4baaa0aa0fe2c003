#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/json_text.h"
#include "compare/comparison.h"
#include "report/write_report.h"

namespace diapason::cli {
namespace {

using report::ReportMade;
using report::ReportRequest;

Result<int> RunReport(const ReportRequest& request, bool json) {
  ASSIGN_OR_RETURN(const ReportMade made, report::WriteReport(request));
  const ReportMade& written = made;
  if (json) {
    const nlohmann::ordered_json shown = {{"report", request.output},
                                          {"bytes", written.bytes},
                                          {"samples", written.samples},
                                          {"headline", written.headline},
                                          {"warnings", written.warnings}};
    PrintOut("{}\n", JsonText(shown));
    return kExitFine;
  }
  for (const std::string& warning : written.warnings) Warn(warning);
  PrintOut("{}: {}, {}\n", request.output, Count(written.samples, "sample"),
           AboutBytes(static_cast<uint64_t>(written.bytes)));
  PrintOut("{}\n", Printable(written.headline));
  return kExitFine;
}

Result<int> RunCompareReport(const ReportRequest& request, const std::vector<std::string>& sides,
                             bool json) {
  Result<compare::Side> before = compare::ReadSide({sides[0]});
  if (!before.ok()) return before.status().WithContext("old");
  Result<compare::Side> after = compare::ReadSide({sides[1]});
  if (!after.ok()) return after.status().WithContext("new");
  const compare::Comparison comparison = compare::Compare(before.value(), after.value(), {});
  const std::string html = compare::ComparisonHtml(comparison, request.title);
  RETURN_IF_ERROR(WriteFileAtomically(request.output, html).WithContext("writing the report"));
  if (json) {
    const nlohmann::ordered_json shown = {{"report", request.output},
                                          {"bytes", html.size()},
                                          {"calls", comparison.calls.size()},
                                          {"warnings", comparison.notes}};
    PrintOut("{}\n", JsonText(shown));
    return kExitFine;
  }
  PrintOut("{}: {}, {}\n", request.output, Count(comparison.calls.size(), "call"),
           AboutBytes(static_cast<uint64_t>(html.size())));
  return kExitFine;
}

}  // namespace

void AddReport(CommandLine* parent, CommandAction* run) {
  struct Asked {
    ReportRequest request;
    std::vector<std::string> compared;
    bool no_doctor = false;
    bool json = false;
  };
  auto asked = std::make_shared<Asked>();
  ReportRequest& request = asked->request;
  CommandLine* command = parent->AddCommand(
      "report", "Write measurements, choices and learning results as one HTML file");
  command->Describe(
      "The HTML file needs no network and no other file. Each input is recognised by its content: "
      "stores (`sweep`, `tune`, `data import`), journals of jobs (DIAPASON_JOURNAL), and logs and "
      "tables that `data import` accepts. docs/commands/report.md describes each part of the "
      "page.");
  command
      ->AddOption("STORE|JOURNAL|FILE", request.inputs,
                  "Stores, journals, logs and tables to report on")
      ->TypeName("STORE|JOURNAL|FILE");
  command->AddOption("--policy", request.policies, "Policy to draw as a map")
      ->TypeName("FILE")
      ->OneEach();
  command
      ->AddOption("--compare", asked->compared,
                  "Old and new measurements to show side by side, as `compare` reads them")
      ->TypeName("DIR|FILE")
      ->Expect(2, 2);
  command->AddOutput(request.output, "HTML file to write")->Required();
  command
      ->AddOption("--title", request.title,
                  "Title of the report (default: made from the measurements)")
      ->TypeName("TEXT");
  command->AddFlag("--no-doctor", asked->no_doctor,
                   "Leave out the findings of `doctor` about this machine");
  command->AddJson(asked->json, "Print a JSON summary of the written file");
  command->Example("diapason report diapason.db -o report.html", "Report the results of a sweep");
  command->Example("diapason report diapason.db --policy my.conf -o report.html");
  command->Example("diapason report j.* -o report.html", "Report what a job has learned");
  command->Example("diapason report --compare old.db new.db -o compare.html",
                   "Show what became slower or faster");
  command->Callback([asked, run] {
    if (!asked->compared.empty()) {
      if (!asked->request.inputs.empty() || !asked->request.policies.empty()) {
        throw UsageError{"--compare", "cannot be combined with other inputs and policies"};
      }
      *run = [asked] { return RunCompareReport(asked->request, asked->compared, asked->json); };
      return;
    }
    if (asked->request.inputs.empty()) {
      throw UsageError{"STORE|JOURNAL|FILE", "name what to report on"};
    }
    asked->request.doctor = !asked->no_doctor;
    *run = [asked] { return RunReport(asked->request, asked->json); };
  });
}

}  // namespace diapason::cli
