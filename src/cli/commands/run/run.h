#pragma once

#include <string>

#include "job/outcome.h"
#include "job/prepare.h"
#include "job/run_to_end.h"
#include "mpi_profile/mpi_profile.h"

namespace diapason::cli {

// `diapason run --json`: one document, before and after the run.
std::string DryRunJson(const job::PreparedJob& prepared);
std::string RunJson(const job::PreparedJob& prepared, const job::Supervised& ended,
                    const job::JobOutcome& outcome, int status);

// The same of an MPI program; `profile` may be an error.
std::string MpiRunJson(const job::PreparedJob& prepared, const job::Supervised& ended,
                       const Result<mpi_profile::MpiProfile>& profile, int status);

// `diapason run --dry-run`: variables and command as lines of a shell.
std::string DryRunText(const job::PreparedJob& prepared);

}  // namespace diapason::cli
