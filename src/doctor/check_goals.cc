#include "base/text.h"
#include "doctor/checks.h"

namespace diapason::doctor {

void CheckTest(const CheckInputs& facts, std::vector<Finding>* findings) {
  const TestResult& test = facts.test;
  if (!test.wanted) return;
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
               {Format("all-reduce of %s: %.0f us", test.fallback_what.c_str(), test.fallback_us)});
    return;
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
               Format("goal '%s' missed: %s, wanted %s", goal.name.c_str(), goal.value.c_str(),
                      goal.goal.c_str()),
               {goal.what + ": median " + goal.value + ", 95 % " + goal.interval},
               "see what the findings above say of links, PCIe and the environment");
  }
  AddFinding(findings, "test.met", Severity::kFine,
             Format("%zu of %zu goals met", met, test.goals.size()), {test.headline});
}

}  // namespace diapason::doctor
