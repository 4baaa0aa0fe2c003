// Which backend can be tuned here, and what is tuned on it.
#include <algorithm>

#include "base/settings.h"
#include "base/text.h"
#include "base/units.h"
#include "comm/backend_facts.h"
#include "comm/gpu/runtime.h"
#include "domain/collectives.h"
#include "tune/tuning.h"

namespace diapason::tune {
namespace {

constexpr int kHostRanks = 4;
// More kinds of recorded calls than this cannot be measured well in minutes.
constexpr size_t kMostKinds = 24;
constexpr double kHostCompute = 0.02;
constexpr double kGpuCompute = 0.005;
constexpr char kHostSizes[] = "1K:4M:x2";
constexpr char kGpuSizes[] = "1K:64M:x2";
// Each is an upper bound: a library that has fewer runs those.
const std::vector<int> kChannels = {0, 1, 2, 4, 8, 16, 32};

int GpuCount() {
  for (const auto& runtime : {comm::gpu::Cuda(), comm::gpu::Hip()}) {
    if (runtime.ok()) return runtime.value()->DeviceCount();
  }
  return 0;
}

bool OnGpu(const std::string& backend) { return comm::FactsOfBackend(backend).gpus != nullptr; }

// The first backend worth tuning: a GPU library if there are two GPUs or more.
Result<TuneGround> Detect() {
  const std::vector<BackendInfo> backends = Backends();
  const int gpus = GpuCount();
  std::string reasons;
  for (const BackendInfo& backend : backends) {
    if (comm::FactsOfBackend(backend.name).simulated) continue;
    if (!backend.usable) {
      reasons += "; " + backend.name + ": " + backend.reason;
      continue;
    }
    if (OnGpu(backend.name) && gpus < 2) continue;
    std::string why = Count(static_cast<size_t>(std::max(gpus, 0)), "GPU");
    if (!OnGpu(backend.name)) {
      why = gpus == 0 ? "no GPU found: tuning CPU collectives of this machine"
                      : "one GPU has no other to talk to: tuning collectives of this machine's "
                        "processors (--backend nccl -g 4 lets four ranks share the GPU)";
    }
    return TuneGround{backend.name, why};
  }
  return Unavailable("no backend on this host can be tuned" + reasons +
                     "; --backend sim tunes a simulated cluster");
}

Result<measure::IterationSpec> StepOf(const TuningRequest& request, const measure::Subject& subject,
                                      const Mix& mix, const std::optional<RecordedStep>& recorded) {
  const bool gpu = OnGpu(subject.backend) || subject.simulated;
  Result<measure::IterationSpec> made = Invalid("no step");
  if (recorded.has_value()) {
    made = StepIteration(*recorded);
  } else if (!mix.entries.empty()) {
    made = MixIteration(mix);
  } else {
    measure::PresetOptions preset;
    preset.host = !gpu;
    if (request.bucket_bytes > 0) preset.bytes = request.bucket_bytes;
    made = measure::PresetSpec(request.iteration, preset);
  }
  if (!made.ok()) return made;
  measure::IterationSpec& spec = made.value();
  spec.compute = request.compute > 0 ? request.compute : (gpu ? kGpuCompute : kHostCompute);
  spec.type = request.plan.type;
  spec.limit = std::max(request.ranks.limit, 2 * spec.compute);
  RETURN_IF_ERROR(measure::CheckSpec(spec));
  return made;
}

// How the step was found in the recorded calls.
std::string StepNote(const RecordedCalls& recorded) {
  if (!recorded.step.has_value()) {
    return "no repeated step was found in the order of the recorded calls: it is estimated from "
           "how often each is made, without those made rarely";
  }
  std::string note = "the job repeats " + Count(recorded.step->calls.size(), "call");
  if (recorded.step->outside > 0) {
    note += Format("; {} outside of that (start-up, the end) left out",
                   Count(recorded.step->outside, "recorded call"));
  }
  return note;
}

}  // namespace

Result<TuneGround> FindGround(TuningRequest* request) {
  measure::RankOptions& ranks = request->ranks;
  // A hang must not use up the budget.
  if (ranks.limit <= 0) ranks.limit = std::clamp(request->budget / 6, 5.0, 20.0);
  TuneGround ground{measure::BackendOf(ranks), ""};
  if (ground.backend == "auto") {
    ASSIGN_OR_RETURN(ground, Detect());
  }
  ranks.backend = ground.backend;
  const comm::BackendFacts& facts = comm::FactsOfBackend(ground.backend);
  const bool on_gpu = facts.gpus != nullptr;
  const bool gpu = on_gpu || facts.simulated;
  if (ranks.ranks == 0 && !gpu) ranks.ranks = kHostRanks;
  if (!measure::IsLaunched() && request->launcher.kind == launch::Launcher::Kind::kLocal &&
      measure::RanksHere(ranks) < 2) {
    return Invalid(on_gpu ? "one rank has no other to talk to: say -g 4, which lets four ranks "
                            "share the GPU"
                          : "one rank has no other to talk to: say -g 2 or more");
  }
  search::SweepPlan& plan = request->plan;
  if (plan.sizes.empty()) plan.sizes = ParseSizes(gpu ? kGpuSizes : kHostSizes).value();
  if (plan.operations.empty()) {
    // Every library of a simulated cluster offers what NCCL offers.
    const Library library = facts.library.value_or(Library::kNccl);
    for (const Operation operation :
         {Operation::kAllReduce, Operation::kAllGather, Operation::kReduceScatter}) {
      if (CanChoose(library, NamesOf(operation))) plan.operations.push_back(operation);
    }
  }
  if (gpu) plan.channels = kChannels;
  return ground;
}

Result<TuneGoal> FindGoal(const TuningRequest& request, const measure::Subject& subject) {
  TuneGoal goal;
  RecordedCalls recorded;
  if (!request.workload.empty()) {
    ASSIGN_OR_RETURN(recorded, ReadWorkload(request.workload));
    goal.mix = MakeMix(recorded.entries, kMostKinds, subject);
    if (goal.mix.covered < 0.995) {
      goal.notes.push_back(
          Format("tuning the {} costliest kinds of calls, about {:.0f} % of the recorded time",
                 goal.mix.entries.size(), 100 * goal.mix.covered));
    }
    if (recorded.unread > 0) {
      goal.notes.push_back(Count(recorded.unread, "record") +
                           " of the workload damaged, cut off or dropped by its writer");
    }
    if (recorded.left_out > 0) {
      goal.notes.push_back(Count(recorded.left_out, "recorded call") +
                           " without configurations to choose from left out");
    }
    const std::vector<int64_t>& ranks = recorded.ranks;
    if (!ranks.empty() && std::find(ranks.begin(), ranks.end(), subject.ranks) == ranks.end()) {
      goal.notes.push_back(
          Format("the calls were recorded with {} ranks and are tuned with {}: the policy is for "
                 "{}; use -g, --nodes and --launcher to start as many ranks as the job has",
                 ranks.back(), subject.ranks, subject.ranks));
    }
  }
  Result<std::vector<search::CallCase>> call_cases = Invalid("nothing to measure");
  if (request.iterate) {
    if (!request.workload.empty()) goal.notes.push_back(StepNote(recorded));
    ASSIGN_OR_RETURN(measure::IterationSpec step,
                     StepOf(request, subject, goal.mix, recorded.step));
    goal.step = std::move(step);
    call_cases = IterationCallCases(*goal.step, request.plan, subject);
  } else if (!goal.mix.entries.empty()) {
    call_cases = MixCallCases(goal.mix, request.plan, subject);
  } else {
    call_cases = search::MakeCallCases(request.plan, subject);
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

}  // namespace diapason::tune
