// Tables of measurements: whatever they hold, a plan made of them is a policy that can be read, and
// never chooses what they call slower than the library's own choice.
#include "dataset/import.h"
#include "fuzz.h"
#include "model/evaluate.h"
#include "model/plan.h"
#include "policy/parse.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace diapason;         // NOLINT
  using namespace diapason::model;  // NOLINT
  Result<dataset::Import> read = dataset::ImportText(fuzz::Text(data, size), "fuzz.csv", {});
  if (!read.ok()) return 0;
  const dataset::StoreContents contents = dataset::ContentsOf(std::move(read).value());
  const Result<Grid> grid = MakeGrid(contents, {});
  if (!grid.ok()) {
    fuzz::Promise(!grid.status().message().empty(), "an error says why");
    return 0;
  }
  (void)grid.value().Fingerprint();
  const Result<PlannedPolicy> plan = MakePlan(&grid.value(), nullptr, {});
  fuzz::Promise(plan.ok(), "measurements can be planned from");
  policy::ParseOptions options;
  options.library = grid.value().library;
  const Result<policy::Policy> again = policy::ParseStrictly(plan.value().Text(), "plan", options);
  fuzz::Promise(again.ok(), "a plan can be read");
  size_t unknown = 0;
  const Result<Evaluation> judged = EvaluatePolicy(grid.value(), again.value(), &unknown);
  fuzz::Promise(judged.ok() && unknown == 0, "a plan asks for what was measured");
  fuzz::Promise(judged.value().scores[1].all.harmed == 0, "a plan harms nothing that was measured");
  return 0;
}
