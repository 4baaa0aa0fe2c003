// What people hand to `env check`: scripts, files of the library, and, for those who write them,
// the tables of variables.
#include "fuzz.h"
#include "knobs/catalogue.h"
#include "knobs/check.h"
#include "knobs/files/collector.h"
#include "knobs/files/read_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace diapason;         // NOLINT
  using namespace diapason::knobs;  // NOLINT
  const std::string text(fuzz::Text(data, size));

  std::vector<Finding> findings;
  const MapEnvironment nothing({});
  const CheckedFor newest = {Library::kNccl, Catalogue::NewestKnown(Library::kNccl), nullptr};
  const CheckedFor unknown = {Library::kRccl, 0, nullptr};
  std::vector<Assignment> script;
  for (const char* name :
       {"", "a.sh", "Dockerfile", "a.yaml", "a.json", "a.py", "a.env", "a.toml"}) {
    FileReading read = ReadVariables(text, name, newest);
    for (const Finding& finding : read.findings) {
      fuzz::Promise(!finding.evidence.empty(), "a finding about a file has a line");
    }
    for (const Assignment& one : read.assignments) {
      fuzz::Promise(read.form == FileForm::kConfig || CountsInFiles(one.name),
                    "other programs' variables are not taken");
    }
    script.insert(script.end(), read.assignments.begin(), read.assignments.end());
  }
  const std::vector<Assignment> file =
      FromConfigText(text, "nccl.conf", newest, nothing, &findings);
  for (const std::vector<Assignment>& one_set : {script, file}) {
    const std::vector<Assignment>* set = &one_set;
    for (const CheckedFor& checked_for : {newest, unknown}) {
      size_t fine = 0;
      Severity last = Severity::kError;
      for (const Finding& finding : CheckAssignments(*set, checked_for, Catalogue::BuiltIn())) {
        fuzz::Promise(!finding.id.empty() && !finding.title.empty(), "a finding says what it is");
        fuzz::Promise(finding.severity <= last, "the worst come first");
        last = finding.severity;
        fine += finding.severity == Severity::kFine ? 1 : 0;
      }
      fuzz::Promise(fine <= set->size(), "what is fine was set");
    }
  }
  for (const Finding& finding : findings) {
    fuzz::Promise(finding.evidence.size() == 1, "a line that is wrong has a number");
  }

  const Result<Catalogue> tables = Catalogue::Parse({{"fuzz.toml", text}});
  if (tables.ok()) {
    for (const Knob& knob : tables.value().knobs()) {
      fuzz::Promise(tables.value().Find(knob.name) == &knob, "what was read is found");
      fuzz::Promise(!AllowedText(knob).empty(), "it says what it takes");
      (void)CheckAssignments(script, newest, tables.value());
    }
  } else {
    fuzz::Promise(!tables.status().message().empty(), "an error says what it is");
  }
  return 0;
}
