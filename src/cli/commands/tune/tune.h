#pragma once

#include <string>
#include <vector>

#include "cli/commands/sweep/sweep_options.h"
#include "tune/session.h"
#include "tune/workload.h"

namespace diapason::cli {

class Option;

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
  Option* limit_given = nullptr;

  bool Iterates() const { return objective == "iteration"; }
};

// The backend and the number of ranks, and the reason if the user did not choose them. Fills in the
// options that depend on them.
struct TuneGround {
  std::string backend;
  std::string why;
};
Result<TuneGround> FindGround(TuneOptions* options);

// The calls to tune, once the library and machine are known.
struct TuneGoal {
  std::vector<search::CallCase> call_cases;
  tune::Mix mix;                               // from --workload; empty without
  std::optional<measure::IterationSpec> step;  // from --objective iteration
  std::vector<std::string> notes;
};
Result<TuneGoal> FindGoal(const TuneOptions& options, const measure::Subject& subject);

// The calls of a recorded job: journals of the plugin, or logs of NCCL with NCCL_DEBUG_SUBSYS=COLL.
// If there are files of several ranks, each call counts once.
struct RecordedCalls {
  std::vector<tune::MixEntry> entries;
  std::vector<int64_t> ranks;  // sizes of its communicators, if known
  uint64_t left_out = 0;       // calls that are not a collective we can tune
};
Result<RecordedCalls> ReadWorkload(const std::vector<std::string>& files);

// The written files, with absolute paths.
struct TuneFiles {
  std::string folder;
  std::string policy;
  std::string rules;  // Open MPI only
  std::string store;
  std::string report;  // "": not written
  std::string older;   // the policy of an earlier run; "" if there was none or it is equal
};

// The table, the gains, and the calls left to the library; then the commands to use the policy in a
// job.
std::string TuneTable(const tune::TuneOutcome& outcome, const TuneGoal& goal);
std::string TuneSummary(const tune::TuneOutcome& outcome, const TuneGoal& goal, bool relaunched);
std::string TuneUse(const tune::TuneOutcome& outcome, const TuneFiles& files);
std::string TuneJson(const tune::TuneOutcome& outcome, const TuneGoal& goal,
                     const TuneFiles& files);

}  // namespace diapason::cli
