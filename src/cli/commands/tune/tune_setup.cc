// Determines what `tune` can tune on this host, and for which calls.
#include <algorithm>

#include "base/settings.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/tune/tune.h"
#include "comm/gpu/runtime.h"

namespace diapason::cli {
namespace {

constexpr int kHostRanks = 4;
// More kinds of recorded calls than this cannot be measured well in minutes.
constexpr size_t kMostKinds = 24;
constexpr double kHostCompute = 0.02;
constexpr double kGpuCompute = 0.005;
constexpr char kHostSizes[] = "1K:4M:x2";
constexpr char kGpuSizes[] = "1K:64M:x4";
// Each is an upper bound: a library that has fewer channels runs with those.
constexpr char kChannels[] = "default,1,2,4,8,16,32";

int GpuCount() {
  for (const auto& runtime : {comm::gpu::Cuda(), comm::gpu::Hip()}) {
    if (runtime.ok()) return runtime.value()->DeviceCount();
  }
  return 0;
}

bool OnGpu(const std::string& backend) { return backend == "nccl" || backend == "rccl"; }

// The first backend worth tuning: a GPU library if there are two GPUs or more.
Result<TuneGround> Detect() {
  const std::vector<BackendInfo> backends = Backends();
  const int gpus = GpuCount();
  std::string reasons;
  for (const BackendInfo& backend : backends) {
    if (backend.name == "sim") continue;
    if (!backend.usable) {
      reasons += "; " + backend.name + ": " + backend.reason;
      continue;
    }
    if (OnGpu(backend.name) && gpus < 2) continue;
    std::string why = Count(static_cast<size_t>(std::max(gpus, 0)), "GPU");
    if (!OnGpu(backend.name)) {
      why = gpus == 0 ? "no GPU found: tuning CPU collectives of this machine"
                      : "one GPU has nobody to talk to: tuning collectives of this machine's "
                        "processors (--backend nccl -g 4 lets four ranks share the GPU)";
    }
    return TuneGround{backend.name, why};
  }
  return Unavailable("no backend on this host can be tuned" + reasons +
                     "; --backend sim tunes a simulated cluster");
}

Result<measure::IterationSpec> StepOf(const TuneOptions& options, const measure::Subject& subject,
                                      const tune::Mix& mix) {
  const bool gpu = OnGpu(subject.backend) || subject.simulated;
  Result<measure::IterationSpec> made = Invalid("no step");
  if (!mix.entries.empty()) {
    made = tune::MixIteration(mix);
  } else {
    measure::PresetOptions preset;
    preset.host = !gpu;
    if (!options.bucket_bytes.empty()) {
      const Result<uint64_t> bytes = ParseBytes(options.bucket_bytes);
      if (!bytes.ok()) return bytes.status().WithContext("--bucket-bytes");
      preset.bytes = bytes.value();
    }
    made = measure::PresetSpec(options.iteration, preset);
  }
  if (!made.ok()) return made;
  measure::IterationSpec& spec = made.value();
  spec.compute = options.compute > 0 ? options.compute : (gpu ? kGpuCompute : kHostCompute);
  spec.type = options.sweep.plan.type;
  spec.limit = std::max(options.sweep.ranks.limit, 2 * spec.compute);
  if (Status status = measure::CheckSpec(spec); !status.ok()) return status;
  return made;
}

}  // namespace

Result<TuneGround> FindGround(TuneOptions* options) {
  SweepOptions& sweep = options->sweep;
  std::string asked = sweep.ranks.backend;
  if (asked == "auto") asked = Settings::Read(ProcessEnvironment()).Text(Setting::kBackend);
  TuneGround ground{asked, ""};
  if (asked == "auto") {
    Result<TuneGround> found = Detect();
    if (!found.ok()) return found;
    ground = std::move(found).value();
  }
  sweep.ranks.backend = ground.backend;
  const bool gpu = OnGpu(ground.backend) || ground.backend == "sim";
  if (sweep.ranks.ranks == 0 && !OnGpu(ground.backend) && ground.backend != "sim") {
    sweep.ranks.ranks = kHostRanks;
  }
  if (!IsLaunched() && sweep.launcher_name == "local" && RanksHere(sweep.ranks) < 2) {
    return Invalid(
        OnGpu(ground.backend)
            ? "one rank has nobody to talk to: say -g 4, which lets four ranks share the "
              "GPU"
            : "one rank has nobody to talk to: say -g 2 or more");
  }
  if (!options->sizes_given) sweep.sizes = gpu ? kGpuSizes : kHostSizes;
  if (!options->collectives_given) {
    sweep.collectives = {"all_reduce"};
    // Gloo has one algorithm for gather and one for scatter: there is no choice.
    if (ground.backend != "gloo") {
      sweep.collectives.insert(sweep.collectives.end(), {"all_gather", "reduce_scatter"});
    }
  }
  if (gpu) sweep.channels = kChannels;
  return ground;
}

Result<TuneGoal> FindGoal(const TuneOptions& options, const measure::Subject& subject) {
  TuneGoal goal;
  if (!options.workload.empty()) {
    const Result<RecordedCalls> recorded = ReadWorkload(options.workload);
    if (!recorded.ok()) return recorded.status();
    goal.mix = tune::MakeMix(recorded.value().entries, kMostKinds, subject);
    if (goal.mix.covered < 0.995) {
      goal.notes.push_back(
          Format("tuning the %zu costliest kinds of calls, about %.0f %% of the recorded time",
                 goal.mix.entries.size(), 100 * goal.mix.covered));
    }
    if (recorded.value().left_out > 0) {
      goal.notes.push_back(Count(recorded.value().left_out, "recorded call") +
                           " without configurations to choose from left out");
    }
    const std::vector<int64_t>& ranks = recorded.value().ranks;
    if (!ranks.empty() && std::find(ranks.begin(), ranks.end(), subject.ranks) == ranks.end()) {
      goal.notes.push_back(
          Format("the calls were recorded with %lld ranks and are tuned with %d: the policy is for "
                 "%d; use -g, --nodes and --launcher to start as many ranks as the job has",
                 static_cast<long long>(ranks.back()), subject.ranks, subject.ranks));
    }
  }
  Result<std::vector<search::CallCase>> call_cases = Invalid("nothing to measure");
  if (options.Iterates()) {
    Result<measure::IterationSpec> step = StepOf(options, subject, goal.mix);
    if (!step.ok()) return step.status();
    goal.step = std::move(step).value();
    call_cases = tune::IterationCallCases(*goal.step, options.sweep.plan, subject);
  } else if (!goal.mix.entries.empty()) {
    call_cases = tune::MixCallCases(goal.mix, options.sweep.plan, subject);
  } else {
    call_cases = search::MakeCallCases(options.sweep.plan, subject);
  }
  if (!call_cases.ok()) return call_cases.status();
  goal.call_cases = std::move(call_cases).value();
  const bool choice = std::any_of(
      goal.call_cases.begin(), goal.call_cases.end(),
      [](const search::CallCase& call_case) { return call_case.candidates.size() > 1; });
  if (!choice) {
    return Invalid(std::string(LibraryTitle(subject.library)) +
                   " offers no choice for these collectives: there is nothing to tune");
  }
  return goal;
}

}  // namespace diapason::cli
