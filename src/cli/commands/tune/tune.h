#pragma once

#include <string>
#include <vector>

#include "cli/commands/sweep/sweep_options.h"
#include "host/job_library.h"
#include "tune/tuning.h"

namespace diapason::cli {

// The command line of `diapason tune`.
struct TuneOptions {
  SweepOptions sweep;  // the options that tune and sweep have in common: ranks, launcher, sizes
  double budget = 120;
  int64_t samples = 0;  // 0: as many as the budget allows
  std::string objective = "collective";
  std::string iteration;  // "" until the command line is read, then "ddp"
  std::string bucket_bytes;
  double compute = 0;  // seconds of a step; 0: default of the backend
  std::vector<std::string> workload;
  std::string output = "diapason-tuned";
  bool json = false;
  bool quiet = false;
  bool collectives_given = false;
  bool sizes_given = false;
  host::JobLibrary job;  // the file of NCCL or RCCL that was chosen; none for other backends

  bool Iterates() const { return objective == "iteration"; }
};

// The table, what was gained and what was left alone; then the lines that put it into a job.
std::string TuneTable(const tune::TuneOutcome& outcome, const tune::TuneGoal& goal);
std::string TuneSummary(const tune::TuneOutcome& outcome, const tune::TuneGoal& goal,
                        bool relaunched);
std::string TuneUse(const tune::TuneOutcome& outcome, const tune::TuneFiles& files);
std::string TuneJson(const TuneOptions& options, const tune::TuneOutcome& outcome,
                     const tune::TuneGoal& goal, const tune::TuneFiles& files);

}  // namespace diapason::cli
