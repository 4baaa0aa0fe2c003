#pragma once

#include <string>

#include "base/status.h"
#include "mpi_tune/tuning.h"

namespace diapason::mpi_tune {

struct LeaveOptions {
  std::string folder;
  std::string fingerprint;  // of this machine
  double now = 0;           // seconds since 1970
};

// Writes policy.conf, rules.conf (Open MPI reads it; none if nothing was confirmed, and that of an
// earlier run is removed), result.json and report.html into the folder, and notes their names.
Status Leave(const LeaveOptions& options, MpiTuneResult* result);

// result.json, and what --json prints.
std::string ResultJson(const MpiTuneResult& result);

// The lines by which the program uses the rules.
std::string UseText(const MpiTuneResult& result);

}  // namespace diapason::mpi_tune
