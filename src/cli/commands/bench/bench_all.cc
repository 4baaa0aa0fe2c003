#include <cstdio>

#include "base/text.h"
#include "cli/commands/bench/bench_options.h"
#include "cli/framework/command.h"
#include "measure/job_measurer.h"

namespace diapason::cli {
namespace {

// The ranks bound their waits themselves; how many calls are in one round is the user's choice.
constexpr double kLongestRound = 86400;  // seconds

// Starts ranks of one backend and measures with them. On an error `*result` has what was measured
// before.
Status MeasureBackend(const BenchOptions& options, const std::string& backend,
                      BenchResult* result) {
  RankOptions ranks = options.ranks;
  ranks.backend = backend;
  const Result<std::string> self = OwnProgram();
  if (!self.ok()) return self.status();
  measure::JobMeasurerOptions job;
  job.backend = backend;
  job.launcher = measure::LauncherHere(backend, RanksHere(ranks), self.value());
  job.limit = LimitOf(ranks);
  job.grace = kLongestRound;
  job.seed = ranks.seed;
  job.choose = Chooses(options);
  const Result<std::unique_ptr<measure::JobMeasurer>> measurer =
      measure::JobMeasurer::Create(std::move(job));
  if (!measurer.ok()) return measurer.status();
  std::vector<dataset::Sample> samples;
  const Status measured = MeasureBench(
      options, measurer.value().get(), [](const BenchRow&) {}, result, &samples);
  const Status kept = KeepSamples(options.store, result->subject, samples);
  return measured.ok() ? kept : measured;
}

}  // namespace

int BenchAllBackends(const BenchOptions& options) {
  if (IsLaunched()) {
    return Fail(Invalid("--backend all starts the ranks itself; run it without a launcher"));
  }
  if (!options.targets.empty() || !options.algorithm.empty() || !options.protocol.empty()) {
    return Fail(
        Invalid("--backend all cannot be combined with --targets or with a configuration: every "
                "library has its own names"));
  }
  std::vector<BenchResult> results;
  int status = kExitFine;
  for (const BackendInfo& backend : Backends()) {
    if (backend.name == "sim") continue;
    if (!backend.usable) {
      std::fprintf(stderr, "diapason: %s: %s\n", backend.name.c_str(), backend.reason.c_str());
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
    std::printf("[\n%s]\n", Join(texts, ",\n").c_str());
    return status;
  }
  if (options.csv) {
    for (size_t i = 0; i < results.size(); ++i) {
      const std::string text = BenchCsv(results[i]);
      std::fputs(text.c_str() + (i == 0 ? 0 : text.find('\n') + 1), stdout);
    }
    return status;
  }
  if (results.empty()) {
    return Fail(Unavailable("no backend works here; `diapason backends` shows why"));
  }
  std::fputs(SideBySide(results).c_str(), stdout);
  return status;
}

}  // namespace diapason::cli
