#pragma once

#include <string>
#include <vector>

#include "advise/doctor/check_process.h"
#include "advise/doctor/checklist.h"
#include "advise/doctor/compare.h"
#include "advise/doctor/facts.h"
#include "base/status.h"

namespace diapason::cli {

// The report of `diapason doctor --json`: facts about the machine, the libraries, what was found,
// the checklist, and what `doctor compare` looks at.
std::string DoctorJson(const advise::Facts& facts, const std::vector<advise::Finding>& findings,
                       const std::vector<advise::ChecklistItem>& checklist);
std::string ProcessJson(const advise::ProcessFacts& facts,
                        const std::vector<advise::Finding>& findings);
std::string LibraryJson(const advise::LibraryFile& file, const advise::PluginFile& plugin);

// Reads such a report, written here or by anybody. At most 4 MiB, 2000 facts of 1024 characters.
Result<advise::HostFacts> ReadDoctorReport(const std::string& path);

// Runs the short test as a child: the goals on GPUs, or a small all-reduce on CPUs. Bounded in
// time; what goes wrong is in the result.
advise::TestResult RunShortTest(const advise::Machine& machine);

// The tuner plugin beside this tool, and whether it loads; no path where there is none.
advise::PluginFile FindOwnPlugin();

// `diapason doctor` with --library, with --pid, and `doctor compare`.
int ShowLibrary(const std::string& root, const std::string& path, bool json);
int ShowProcess(const std::string& root, int pid, bool json, bool all);
int CompareReports(const std::vector<std::string>& paths, bool json, bool all);

}  // namespace diapason::cli
