#include "base/text.h"
#include "cli/commands/bench/bench_options.h"
#include "cli/framework/command.h"
#include "comm/backend_facts.h"
#include "measure/lead_ranks.h"

namespace diapason::cli {
namespace {

// Starts ranks of one backend and measures with them. On an error `*result` has what was measured
// before.
Status MeasureBackend(const BenchOptions& options, const std::string& backend,
                      BenchResult* result) {
  RankOptions ranks = options.ranks;
  ranks.backend = backend;
  ASSIGN_OR_RETURN(const std::unique_ptr<measure::JobMeasurer> measurer,
                   measure::StartRanks(ranks, Chooses(options)));
  std::vector<dataset::Sample> samples;
  const Status measured = MeasureBench(
      options, measurer.get(), [](const BenchRow&) {}, result, &samples);
  const Status kept = KeepSamples(options.store, result->subject, samples);
  return measured.ok() ? kept : measured;
}

}  // namespace

Result<int> BenchAllBackends(const BenchOptions& options) {
  if (IsLaunched()) {
    return Invalid("--backend all starts the ranks itself; run it without a launcher");
  }
  if (!options.targets.empty() || !options.algorithm.empty() || !options.protocol.empty()) {
    return Invalid(
        "--backend all cannot be combined with --targets or with a configuration: every "
        "library has its own names");
  }
  ASSIGN_OR_RETURN(const host::JobLibrary job, UseJobLibrary(options.ranks));
  SayJobLibrary(job);
  std::vector<BenchResult> results;
  int status = kExitFine;
  for (const BackendInfo& backend : Backends()) {
    if (comm::FactsOfBackend(backend.name).simulated) continue;
    if (!backend.usable) {
      WriteError("diapason: " + backend.name + ": " + backend.reason + "\n");
      continue;
    }
    BenchResult result;
    const Status measured = MeasureBackend(options, backend.name, &result);
    if (!measured.ok()) Warn(backend.name + " failed: " + measured.message());
    if (!measured.ok() || result.Wrong() != 0) status = kExitFailed;
    if (!result.rows.empty()) results.push_back(std::move(result));
  }
  if (options.json) {
    std::vector<std::string> texts;
    for (const BenchResult& result : results) texts.push_back(BenchJson(result));
    PrintOut("[\n{}]\n", Join(texts, ",\n"));
    return status;
  }
  if (report::CurrentTableStyle().format != report::TableFormat::kText) {
    WriteOut(BenchTable(results).Text());
    return status;
  }
  if (results.empty()) {
    return Unavailable("no backend works here; `diapason backends` shows why");
  }
  WriteOut(SideBySide(results));
  return status;
}

}  // namespace diapason::cli
