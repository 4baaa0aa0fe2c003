#include "report/write_report.h"

#include <filesystem>

#include "base/clock.h"
#include "base/file.h"
#include "dataset/words.h"
#include "report/inputs.h"
#include "report/page.h"

namespace diapason::report {
namespace {

// Before anything is read: a report that cannot be written is not worth the wait.
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

}  // namespace

Result<ReportMade> WriteReport(const ReportRequest& request) {
  RETURN_IF_ERROR(CheckOutput(request));
  if (request.inputs.empty()) return Invalid("nothing to report: give a store or a journal");
  ReportMade made;
  PageInput page;
  page.title = request.title;
  page.headline = request.headline;
  page.now = static_cast<double>(WallTimeNs()) * 1e-9;
  Status read = ReadReportInputs(request.inputs, &page, &made.warnings);
  if (read.ok()) read = ReadReportPolicies(request.policies, &page);
  if (!read.ok()) return read;
  if (request.doctor) page.doctor = LookAtThisMachine();
  page.notes = made.warnings;
  made.samples = page.contents.records.size();
  const PageData data = MakePageData(std::move(page));
  made.headline = LeadText(data);
  const std::string html = PageHtml(data, PageNonce());
  made.bytes = html.size();
  const Status written = WriteFileAtomically(request.output, html);
  if (!written.ok()) return written.WithContext("writing the report '" + request.output + "'");
  return made;
}

}  // namespace diapason::report
