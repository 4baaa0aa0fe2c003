// Files that are imported: whatever they hold, what comes out can be stored, exported and read
// back.
#include <cmath>

#include "dataset/check.h"
#include "dataset/export.h"
#include "dataset/import.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace diapason;           // NOLINT
  using namespace diapason::dataset;  // NOLINT
  const std::string_view text = fuzz::Text(data, size);
  ImportOptions options;
  options.collective = "allreduce";
  options.bytes = 1 << 20;
  options.ranks = 8;
  (void)ImportIterations(text, "fuzz", options);
  const Result<Import> read = ImportText(text, "all_reduce.log", {});
  if (!read.ok()) {
    fuzz::Promise(!read.status().message().empty(), "an error says why");
    return 0;
  }
  StoreContents contents;
  for (const WholeRun& whole : read.value().runs) {
    fuzz::Promise(!whole.run.id.empty(), "every run has a name");
    contents.runs.push_back(whole.run);
    for (const Sample& sample : whole.samples) {
      const bool timed = sample.seconds >= 0 && std::isfinite(sample.seconds);
      fuzz::Promise(timed || sample.outcome != SampleOutcome::kFine, "what is fine has a time");
      fuzz::Promise(sample.point.ranks >= 1 && sample.point.nodes >= 1, "somebody took part");
      contents.records.push_back({contents.runs.size() - 1, sample});
    }
  }
  (void)Check(contents);
  std::vector<std::string> notes;
  (void)ExportOptimized(contents, 0.05, &notes);
  const std::string exported = ExportCsv(contents);
  const Result<Import> again = ImportText(exported, "fuzz", {});
  fuzz::Promise(again.ok() && again.value().runs.size() == contents.runs.size(),
                "what was exported can be imported");
  return 0;
}
