#pragma once

#include <string>

#include "job_tune/result.h"

namespace diapason::cli {

// `diapason tune -- COMMAND` at its end: the verdict in one sentence, what was chosen, the metric,
// the files, and the command that uses them.
std::string JobTuneText(const job_tune::JobTuneResult& result);

}  // namespace diapason::cli
