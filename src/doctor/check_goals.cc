#include "base/text.h"
#include "doctor/checks.h"

namespace diapason::doctor {

namespace {

// What to do about a test that did not end, with a command that shows where it stops.
std::string TimeOutAction(const TestResult& test) {
  if (!test.on_gpus) {
    return "run `diapason bench --backend gloo -g 2 -b 8 -e 8`; if that hangs too, check that this "
           "host's name leads to one of its own addresses and that no firewall stands between its "
           "processes";
  }
  return Format(
      "run `NCCL_DEBUG=INFO diapason bench -g {} -b 8 -e 8` and see after which line it stops: "
      "during bootstrap, set NCCL_SOCKET_IFNAME to an interface that leads to this host; after "
      "channels are made, try NCCL_P2P_DISABLE=1, and look at /dev/shm and at other jobs on these "
      "GPUs. `--no-test` leaves the test out",
      test.ranks == 0 ? 2 : test.ranks);
}

}  // namespace

void CheckTest(const CheckInputs& facts, std::vector<Finding>* findings) {
  const TestResult& test = facts.test;
  if (!test.wanted) return;
  if (!test.trouble.empty() && test.timed_out) {
    AddFinding(findings, "test.timeout", test.on_gpus ? Severity::kError : Severity::kWarning,
               "the short test of collectives did not end in time", {test.trouble},
               TimeOutAction(test));
    return;
  }
  if (!test.trouble.empty()) {
    AddFinding(findings, "test.failed", test.on_gpus ? Severity::kError : Severity::kWarning,
               test.on_gpus ? "the short test of collectives failed"
                            : "the short test of collectives on CPUs failed",
               {test.trouble}, "run `diapason bench` by hand to see all it says");
    return;
  }
  if (test.fallback_wrong) {
    AddFinding(findings, "test.wrong", Severity::kError, "collectives on CPUs gave wrong results",
               {test.fallback_what},
               "run `diapason bench --backend gloo -g 2` and look at the memory");
  }
  if (!test.on_gpus) {
    AddFinding(findings, "test.cpus", Severity::kNote,
               "the goals for GPUs do not apply here; collectives on CPUs work",
               {Format("all-reduce of {}: {:.0f} us", test.fallback_what, test.fallback_us)});
    return;
  }
  if (test.left_out > 0) {
    AddFinding(findings, "test.slow", Severity::kWarning,
               Format("the two minutes of the short test were over before {} of {} goals were "
                      "measured",
                      test.left_out, test.left_out + test.goals.size()),
               {test.headline},
               "measure all of them without a limit, with `diapason bench --targets` and "
               "targets/four-gpu-nvlink.toml; look for other jobs on this machine");
  }
  if (test.shared) {
    std::vector<std::string> lines;
    for (const GoalResult& goal : test.goals) {
      if (goal.verdict == "met" || goal.verdict == "MISSED") {
        lines.push_back(goal.what + ": median " + goal.value + ", 95 % " + goal.interval);
      }
    }
    AddFinding(findings, "test.shared", Severity::kNote,
               "collectives work; two ranks share the one GPU, so the goals for GPUs do not apply",
               lines);
    return;
  }
  size_t met = 0;
  for (const GoalResult& goal : test.goals) {
    if (goal.verdict == "met") ++met;
    if (goal.verdict != "MISSED") continue;
    AddFinding(findings, "test.missed", Severity::kWarning,
               Format("goal '{}' missed: {}, wanted {}", goal.name, goal.value, goal.goal),
               {goal.what + ": median " + goal.value + ", 95 % " + goal.interval},
               "see what the findings above say of links, PCIe and the environment");
  }
  AddFinding(findings, "test.met", Severity::kFine,
             Format("{} of {} goals met", met, test.goals.size()), {test.headline});
}

}  // namespace diapason::doctor
