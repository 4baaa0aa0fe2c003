#include "cli/commands/report/report.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/report/report_inputs.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/json_text.h"
#include "dataset/words.h"
#include "report/page.h"

namespace diapason::cli {
namespace {

// Checked before any input is read, since reading may take long.
Status CheckOutput(const ReportRequest& request) {
  namespace fs = std::filesystem;
  const std::string shown = "'" + dataset::Printable(request.output) + "'";
  if (request.output.empty()) return Invalid("no output file: give one with -o");
  std::error_code ignored;
  const fs::path path(request.output);
  if (fs::is_directory(path, ignored)) {
    return Invalid(shown + " is a folder: give a file, such as " + (path / "report.html").string());
  }
  const fs::path folder = path.parent_path();
  if (!folder.empty() && !fs::is_directory(folder, ignored)) {
    return NotFound("cannot write " + shown + ": there is no folder '" +
                    dataset::Printable(folder.string()) + "'");
  }
  for (const std::vector<std::string>* list : {&request.inputs, &request.policies}) {
    for (const std::string& input : *list) {
      if (fs::equivalent(input, path, ignored)) {
        return Invalid(shown + " is one of the inputs and would be overwritten");
      }
    }
  }
  return {};
}

// A nonce that the author of the data cannot know.
std::string Nonce() {
  // Not std::random_device: it needs a newer glibc than the oldest supported one.
  unsigned random[4] = {};
  (void)::getentropy(random, sizeof(random));
  std::string word;
  for (const unsigned number : random) word += Format("%08x", number);
  return word;
}

int RunReport(const ReportRequest& request, bool json) {
  const Result<ReportMade> made = WriteReport(request);
  if (!made.ok()) return Fail(made.status());
  const ReportMade& report = made.value();
  if (json) {
    const nlohmann::ordered_json shown = {{"report", request.output},
                                          {"bytes", report.bytes},
                                          {"samples", report.samples},
                                          {"warnings", report.warnings}};
    std::printf("%s\n", JsonText(shown).c_str());
    return kExitFine;
  }
  for (const std::string& warning : report.warnings) Warn(warning);
  std::printf("%s: %s, %s\n", request.output.c_str(), Count(report.samples, "sample").c_str(),
              AboutBytes(static_cast<uint64_t>(report.bytes)).c_str());
  return kExitFine;
}

}  // namespace

Result<ReportMade> WriteReport(const ReportRequest& request) {
  if (Status fine = CheckOutput(request); !fine.ok()) return fine;
  if (request.inputs.empty()) return Invalid("nothing to report: give a store or a journal");
  ReportMade made;
  report::PageInput page;
  page.title = request.title;
  page.now = static_cast<double>(WallTimeNs()) * 1e-9;
  Status read = ReadReportInputs(request.inputs, &page, &made.warnings);
  if (read.ok()) read = ReadReportPolicies(request.policies, &page);
  if (!read.ok()) return read;
  if (request.doctor) page.doctor = LookAtThisMachine();
  page.notes = made.warnings;
  made.samples = page.contents.records.size();
  const std::string html = report::PageHtml(report::MakePageData(std::move(page)), Nonce());
  made.bytes = html.size();
  const Status written = WriteFileAtomically(request.output, html);
  if (!written.ok()) return written.WithContext("writing the report '" + request.output + "'");
  return made;
}

void AddReport(CommandLine* parent, CommandAction* run) {
  struct Asked {
    ReportRequest request;
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
      ->TypeName("STORE|JOURNAL|FILE")
      ->Required();
  command->AddOption("--policy", request.policies, "Policy to draw as a map")
      ->TypeName("FILE")
      ->OneEach();
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
  command->Callback([asked, run] {
    asked->request.doctor = !asked->no_doctor;
    *run = [asked] { return RunReport(asked->request, asked->json); };
  });
}

}  // namespace diapason::cli
