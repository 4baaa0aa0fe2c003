#pragma once

#include <string>

#include "job/outcome.h"
#include "job/prepare.h"
#include "job/run_to_end.h"

namespace diapason::cli {

// `diapason run --json`: one document, before and after the run.
std::string DryRunJson(const job::PreparedJob& prepared);
std::string RunJson(const job::PreparedJob& prepared, const job::Supervised& ended,
                    const job::JobOutcome& outcome, int status);

// `diapason run --dry-run`: variables and command as lines of a shell.
std::string DryRunText(const job::PreparedJob& prepared);

}  // namespace diapason::cli
