#include "doctor/checks.h"

#include <array>

#include "base/text.h"
#include "base/units.h"

namespace diapason::doctor {

void AddFinding(std::vector<Finding>* findings, const char* id, Severity severity,
                std::string title, std::vector<std::string> evidence, std::string action) {
  // A few are enough; the report has all facts.
  constexpr size_t kMostEvidence = 8;
  if (evidence.size() > kMostEvidence) {
    const size_t more = evidence.size() - (kMostEvidence - 1);
    evidence.resize(kMostEvidence - 1);
    evidence.push_back(Format("and {} more", more));
  }
  findings->push_back({id, severity, std::move(title), std::move(evidence), std::move(action)});
}

std::string GpuNames(const std::vector<int>& indexes) {
  constexpr size_t kMostNames = 8;
  std::vector<std::string> names;
  for (const int index : indexes) {
    if (names.size() == kMostNames) break;
    names.push_back(std::to_string(index));
  }
  std::string text = indexes.size() == 1 ? "GPU " : "GPUs ";
  if (indexes.size() > kMostNames) {
    return text + Join(names, ", ") + Format(" and {} more", indexes.size() - kMostNames);
  }
  if (names.size() > 1) {
    const std::string last = names.back();
    names.pop_back();
    return text + Join(names, ", ") + " and " + last;
  }
  return text + Join(names, ", ");
}

std::string AboutLimit(uint64_t bytes) {
  return bytes == host::kUnlimited ? "unlimited" : AboutBytes(bytes);
}

std::vector<Finding> CheckEverything(const CheckInputs& facts) {
  std::vector<Finding> findings;
  CheckGpus(facts, &findings);
  CheckGpuLinks(facts, &findings);
  CheckPci(facts, &findings);
  CheckPeerAccess(facts, &findings);
  CheckCpus(facts, &findings);
  CheckRdma(facts, &findings);
  CheckInterfaces(facts, &findings);
  CheckNamedDevices(facts, &findings);
  CheckLimits(facts, &findings);
  CheckKernelLog(facts, &findings);
  CheckLibraries(facts, &findings);
  CheckTorch(facts, &findings);
  CheckPlugin(facts, &findings);
  findings.insert(findings.end(), facts.environment.begin(), facts.environment.end());
  CheckTest(facts, &findings);
  SortBySeverity(&findings);
  return findings;
}

}  // namespace diapason::doctor
