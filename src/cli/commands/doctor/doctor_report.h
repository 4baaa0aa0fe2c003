#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "doctor/check_process.h"
#include "doctor/checklist.h"
#include "doctor/compare.h"
#include "doctor/facts.h"

namespace diapason::cli {

// The report of `diapason doctor --json`: facts about the machine, the libraries, what was found,
// the checklist, and what `doctor compare` looks at.
std::string DoctorJson(const doctor::CheckInputs& facts, const std::vector<Finding>& findings,
                       const std::vector<doctor::ChecklistItem>& checklist);
std::string ProcessJson(const doctor::ProcessFacts& facts, const std::vector<Finding>& findings);
std::string LibraryJson(const host::LibraryFile& file, const doctor::PluginFile& plugin);

// Reads such a report, written here or by anybody. At most 4 MiB, 2000 facts of 1024 characters.
Result<doctor::HostFacts> ReadDoctorReport(const std::string& path);

// Runs the short test as a child: the goals on GPUs, or a small all-reduce on CPUs. Bounded in
// time; what goes wrong is in the result.
doctor::TestResult RunShortTest(const host::Machine& machine);

// `diapason doctor` with --library, with --pid, and `doctor compare`.
int ShowLibrary(const std::string& root, const std::string& path, bool json);
int ShowProcess(const std::string& root, int pid, bool json, bool all);
int CompareReports(const std::vector<std::string>& paths, bool json, bool all);

}  // namespace diapason::cli
