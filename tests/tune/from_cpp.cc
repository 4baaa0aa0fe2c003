// A program that tunes without the command line: from_cpp FOLDER writes a policy for a simulated
// cluster.
#include <cstdio>

#include "base/file.h"
#include "launch/helper.h"
#include "measure/worker.h"
#include "tune/tuning.h"

int main(int argc, char** argv) {
  using namespace diapason;  // NOLINT
  if (const auto status = launch::RunHelper(argc, argv, {measure::kWorker})) return *status;
  if (argc != 2) return 2;
  tune::TuningRequest request;
  request.ranks.backend = "sim";
  request.ranks.cluster = "h100x8";
  request.plan.operations = {Operation::kAllReduce};
  request.plan.sizes = {4096, 65536};
  request.budget = 3600;
  request.samples = 60;
  request.output = argv[1];
  size_t shown = 0;
  tune::TuningEvents events;
  events.started = [&shown](const tune::TuneGround&, const measure::Subject&,
                            const tune::TuneGoal& goal) { shown = goal.call_cases.size(); };
  const Result<tune::TuningResult> result = tune::RunTuning(request, events);
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().message().c_str());
    return 1;
  }
  const tune::TuneFiles& files = result.value().files;
  const bool fine = result.value().Decided() && shown == 2 && FileExists(files.policy) &&
                    FileExists(files.store) && FileExists(files.report);
  if (!fine) std::fprintf(stderr, "%zu cases, policy '%s'\n", shown, files.policy.c_str());
  return fine ? 0 : 1;
}
