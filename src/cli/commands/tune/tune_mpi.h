#pragma once

#include <string>

#include "base/status.h"
#include "cli/commands/tune/tune_job.h"
#include "mpi_tune/tuning.h"

namespace diapason::cli {

// Of an MPI program, unless --launches is given: ten pairs, and what is tried before them.
inline constexpr int kMpiLaunches = 52;

// Tunes the collectives of an MPI program, prints what was found, and leaves the files.
Result<int> RunTuneMpi(const TuneJobOptions& options);
std::string MpiTuneText(const mpi_tune::MpiTuneResult& result);

}  // namespace diapason::cli
