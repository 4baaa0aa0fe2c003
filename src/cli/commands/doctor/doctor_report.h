#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "doctor/check_process.h"
#include "doctor/checklist.h"
#include "doctor/compare.h"
#include "doctor/facts.h"

namespace diapason::cli {

// The report of `diapason doctor --json`: facts about the machine and the libraries, findings, the
// checklist, and the facts that `doctor compare` compares.
std::string DoctorJson(const doctor::CheckInputs& facts, const std::vector<Finding>& findings,
                       const std::vector<doctor::ChecklistItem>& checklist);
std::string ProcessJson(const doctor::ProcessFacts& facts, const std::vector<Finding>& findings);
std::string LibraryJson(const host::LibraryFile& file, const doctor::PluginFile& plugin);

// Reads such a report from an untrusted file. Fails if it is larger than 4 MiB or has more than
// 2000 facts or a fact of more than 1024 characters.
Result<doctor::HostFacts> ReadDoctorReport(const std::string& path);

// Runs the short test in a child process: the goals on GPUs, or a small all-reduce on CPUs. The
// time is bounded; errors are part of the result.
doctor::TestResult RunShortTest(const host::Machine& machine);

// `diapason doctor` with --library, with --pid, and `doctor compare`.
Result<int> ShowLibrary(const std::string& root, const std::string& path, bool json);
Result<int> ShowProcess(const std::string& root, int pid, bool json, bool all);
Result<int> CompareReports(const std::vector<std::string>& paths, bool json, bool all);

}  // namespace diapason::cli
