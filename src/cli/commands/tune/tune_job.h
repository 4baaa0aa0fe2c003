#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/framework/command_line.h"
#include "job_tune/request.h"

namespace diapason::cli {

// The options of `diapason tune -- COMMAND`.
struct TuneJobOptions {
  job_tune::Request request;
  std::string signal = "TERM";
  std::string library = "auto";
  bool json = false;
  bool quiet = false;
  std::vector<Option*> own;  // options that need a command after "--"
};

void AddTuneJobOptions(CommandLine* command, TuneJobOptions* options);
// Tunes the job, prints what was found, and leaves the files.
Result<int> RunTuneJob(const TuneJobOptions& options);

}  // namespace diapason::cli
