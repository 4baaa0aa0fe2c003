#pragma once

#include <vector>

#include "doctor/facts.h"
#include "domain/finding.h"

namespace diapason::doctor {

// The checks of `diapason doctor`, one function for each part of a machine. They add findings to a
// list: at least one kFine finding if the part could be checked and is in order, none if the
// machine has no such part.
void CheckGpus(const CheckInputs& facts, std::vector<Finding>* findings);
void CheckGpuLinks(const CheckInputs& facts, std::vector<Finding>* findings);
void CheckPci(const CheckInputs& facts, std::vector<Finding>* findings);
void CheckPeerAccess(const CheckInputs& facts, std::vector<Finding>* findings);
void CheckCpus(const CheckInputs& facts, std::vector<Finding>* findings);
void CheckRdma(const CheckInputs& facts, std::vector<Finding>* findings);
void CheckInterfaces(const CheckInputs& facts, std::vector<Finding>* findings);
// Interfaces and adapters that variables name.
void CheckNamedDevices(const CheckInputs& facts, std::vector<Finding>* findings);
void CheckKernelLog(const CheckInputs& facts, std::vector<Finding>* findings);
void CheckLimits(const CheckInputs& facts, std::vector<Finding>* findings);
void CheckLibraries(const CheckInputs& facts, std::vector<Finding>* findings);
void CheckTorch(const CheckInputs& facts, std::vector<Finding>* findings);
void CheckPlugin(const CheckInputs& facts, std::vector<Finding>* findings);
void CheckTest(const CheckInputs& facts, std::vector<Finding>* findings);

// All of them, including the environment, worst first.
std::vector<Finding> CheckEverything(const CheckInputs& facts);

// Adds a finding.
void AddFinding(std::vector<Finding>* findings, const char* id, Severity severity,
                std::string title, std::vector<std::string> evidence = {}, std::string action = "");
// "GPU 3", "GPUs 0, 2 and 5"; at most eight are named.
std::string GpuNames(const std::vector<int>& indexes);
// "64 MiB", "unlimited": rounded, for the user.
std::string AboutLimit(uint64_t bytes);

}  // namespace diapason::doctor
