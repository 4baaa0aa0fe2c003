#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "report/page_data.h"

namespace diapason::cli {

// The first bytes of a file, which identify its format; an error if the file cannot be read.
Result<std::string> StartOf(const std::string& path);

// Reads stores, journals, and files that `data import` accepts, each recognised by its content,
// into `page`. A run that is in several inputs is counted once. Adds messages for the reader of the
// report to `warnings`.
Status ReadReportInputs(const std::vector<std::string>& files, report::PageInput* page,
                        std::vector<std::string>* warnings);

// Policies that name no library are read as policies for the measured library.
Status ReadReportPolicies(const std::vector<std::string>& files, report::PageInput* page);

// The findings of `diapason doctor --no-test` on this machine.
report::PageDoctor LookAtThisMachine();

}  // namespace diapason::cli
