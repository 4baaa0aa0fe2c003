#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/framework/command_line.h"
#include "cli/framework/json_text.h"
#include "report/write_report.h"

namespace diapason::cli {
namespace {

using report::ReportMade;
using report::ReportRequest;

int RunReport(const ReportRequest& request, bool json) {
  const Result<ReportMade> made = report::WriteReport(request);
  if (!made.ok()) return Fail(made.status());
  const ReportMade& written = made.value();
  if (json) {
    const nlohmann::ordered_json shown = {{"report", request.output},
                                          {"bytes", written.bytes},
                                          {"samples", written.samples},
                                          {"warnings", written.warnings}};
    std::printf("%s\n", JsonText(shown).c_str());
    return kExitFine;
  }
  for (const std::string& warning : written.warnings) Warn(warning);
  std::printf("%s: %s, %s\n", request.output.c_str(), Count(written.samples, "sample").c_str(),
              AboutBytes(static_cast<uint64_t>(written.bytes)).c_str());
  return kExitFine;
}

}  // namespace

void AddReport(CommandLine* parent, CommandAction* run) {
  struct Asked {
    ReportRequest request;
    bool no_doctor = false;
    bool json = false;
  };
  auto asked = std::make_shared<Asked>();
  ReportRequest& request = asked->request;
  CommandLine* command = parent->AddCommand(
      "report", "Write what was measured, chosen and learned as one HTML file to look at");
  command->Describe(
      "The file needs no network and no other file. What an input is, its content says: stores "
      "(`sweep`, `tune`, `data import`), journals of jobs (DIAPASON_JOURNAL), and logs and tables "
      "that `data import` would take. docs/commands/report.md says what each part of the page "
      "means.");
  command->AddOption("STORE|JOURNAL|FILE", request.inputs, "Stores, journals, logs and tables")
      ->TypeName("STORE|JOURNAL|FILE")
      ->Required();
  command->AddOption("--policy", request.policies, "A policy to draw as a map")
      ->TypeName("FILE")
      ->OneEach();
  command->AddOutput(request.output, "The HTML file to write")->Required();
  command->AddOption("--title", request.title, "The title (default: what was measured)")
      ->TypeName("TEXT");
  command->AddFlag("--no-doctor", asked->no_doctor, "Do not look at this machine");
  command->AddJson(asked->json, "Print as JSON what was written");
  command->Example("diapason report diapason.db -o report.html", "What a sweep has found");
  command->Example("diapason report diapason.db --policy my.conf -o report.html");
  command->Example("diapason report j.* -o report.html", "What a job has learned");
  command->Callback([asked, run] {
    asked->request.doctor = !asked->no_doctor;
    *run = [asked] { return RunReport(asked->request, asked->json); };
  });
}

}  // namespace diapason::cli
