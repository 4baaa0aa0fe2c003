#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/commands/data/data.h"
#include "cli/framework/command.h"
#include "cli/framework/json_text.h"
#include "dataset/words.h"

namespace diapason::cli {
namespace {

using nlohmann::ordered_json;

void PrintText(const std::vector<Finding>& findings, const std::string& store,
               const dataset::StoreContents& contents) {
  size_t counts[4] = {};
  for (const Finding& finding : findings) {
    ++counts[static_cast<size_t>(finding.severity)];
    PrintOut("{}: {}\n", std::string(SeverityName(finding.severity)), finding.title);
    for (const std::string& line : finding.evidence) {
      PrintOut("    {}\n", dataset::Printable(line, 600));
    }
    PrintOut("  {}\n\n", finding.action);
  }
  PrintOut("{}: {} of {} checked; {}, {}, {}\n", store, Count(contents.records.size(), "sample"),
           Count(contents.runs.size(), "run"), Count(counts[3], "error"),
           Count(counts[2], "warning"), Count(counts[1], "note"));
}

void PrintJson(const std::vector<Finding>& findings, const std::string& store,
               const dataset::StoreContents& contents) {
  ordered_json list = ordered_json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"severity", SeverityName(finding.severity)},
                    {"kind", finding.id},
                    {"what", finding.title},
                    {"evidence", finding.evidence},
                    {"advice", finding.action}});
  }
  const ordered_json json = {{"store", store},
                             {"runs", contents.runs.size()},
                             {"samples", contents.records.size()},
                             {"findings", list}};
  PrintOut("{}\n", JsonText(json));
}

}  // namespace

Result<int> RunDataCheck(const DataCheck& asked) {
  {
    ASSIGN_OR_RETURN(std::unique_ptr<dataset::SampleStore> store,
                     dataset::SampleStore::Open(asked.store, dataset::SampleStore::Access::kRead));
    RETURN_IF_ERROR(store->CheckIntegrity());
  }
  ASSIGN_OR_RETURN(const dataset::StoreContents contents, ReadStore(asked.store, asked.filter));
  const std::vector<Finding> findings = dataset::Check(contents);
  if (asked.json) {
    PrintJson(findings, asked.store, contents);
  } else {
    PrintText(findings, asked.store, contents);
  }
  return Worst(findings) == Severity::kError ? kExitFailed : kExitFine;
}

}  // namespace diapason::cli
