#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "report/page_data.h"

namespace diapason::report {

// The first bytes of a file, which identify its format; an error if the file cannot be read.
Result<std::string> StartOf(const std::string& path);

// Reads stores, journals, and files that `data import` would take, each recognised by its content,
// into `page`. A run that is in several of them counts once. What a reader of the report has to
// know goes to `warnings`.
Status ReadReportInputs(const std::vector<std::string>& files, PageInput* page,
                        std::vector<std::string>* warnings);

// Policies that name no library are taken for the one that was measured.
Status ReadReportPolicies(const std::vector<std::string>& files, PageInput* page);

// What `diapason doctor --no-test` finds here.
PageDoctor LookAtThisMachine();

}  // namespace diapason::report
