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
  SweepOptions sweep;  // ranks, launcher, sizes: what the two have in common
  double budget = 120;
  int64_t samples = 0;  // 0: as many as the budget allows
  std::string objective = "collective";
  std::string iteration;  // "" until the command line is read, then "ddp"
  std::string bucket_bytes;
  double compute = 0;  // seconds of a step; 0: by the backend
  std::vector<std::string> workload;
  std::string output = "diapason-tuned";
  bool json = false;
  bool quiet = false;
  bool collectives_given = false;
  bool sizes_given = false;
  Option* limit_given = nullptr;

  bool Iterates() const { return objective == "iteration"; }
};

// Which backend, how many ranks, and why, where nobody has said so. Fills in what depends on it.
struct TuneGround {
  std::string backend;
  std::string why;
};
Result<TuneGround> FindGround(TuneOptions* options);

// What is to be tuned, once it is known on whom.
struct TuneGoal {
  std::vector<search::CallCase> call_cases;
  tune::Mix mix;                               // of --workload; empty without
  std::optional<measure::IterationSpec> step;  // of --objective iteration
  std::vector<std::string> notes;
};
Result<TuneGoal> FindGoal(const TuneOptions& options, const measure::Subject& subject);

// The calls of a recorded job: journals of the plugin, or logs of NCCL with NCCL_DEBUG_SUBSYS=COLL.
// Of several ranks' files, each call counts once.
struct RecordedCalls {
  std::vector<tune::MixEntry> entries;
  std::vector<int64_t> ranks;  // of its communicators, where they are known
  uint64_t left_out = 0;       // calls that no collective of ours is
};
Result<RecordedCalls> ReadWorkload(const std::vector<std::string>& files);

// Files that were written, with absolute paths.
struct TuneFiles {
  std::string folder;
  std::string policy;
  std::string rules;  // Open MPI only
  std::string store;
  std::string report;  // "": not written
  std::string older;   // the policy of an earlier run; "": there was none, or it says the same
};

// The table, what was gained and what was left alone; then the lines that put it into a job.
std::string TuneTable(const tune::TuneOutcome& outcome, const TuneGoal& goal);
std::string TuneSummary(const tune::TuneOutcome& outcome, const TuneGoal& goal, bool relaunched);
std::string TuneUse(const tune::TuneOutcome& outcome, const TuneFiles& files);
std::string TuneJson(const tune::TuneOutcome& outcome, const TuneGoal& goal,
                     const TuneFiles& files);

}  // namespace diapason::cli
