#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "launch/launcher.h"
#include "measure/iteration.h"
#include "measure/ranks.h"
#include "search/sweep.h"
#include "tune/recorded_step.h"
#include "tune/session.h"
#include "tune/workload.h"

namespace diapason::tune {

// A whole tuning, as `diapason tune` runs it: finds a backend, starts ranks, tunes
// (tune/session.h), and writes a folder with the policy, the samples and a report. A program that
// calls RunTuning must call launch::RunHelper in its main(), since the ranks are helper processes
// of that program.
struct TuningRequest {
  measure::RankOptions ranks;  // backend "auto": the first that is worth tuning
  launch::Launcher launcher;   // how the ranks are started; not used where this process is a rank
  int nodes = 1;
  search::SweepPlan plan;             // without operations, sizes or channels: those of the backend
  double budget = 120;                // seconds, for everything
  int64_t samples = 0;                // see SessionOptions
  bool iterate = false;               // tune a whole step that overlaps calls with compute
  std::string iteration = "ddp";      // the step
  uint64_t bucket_bytes = 0;          // of every bucket of the step; 0: the step's own
  double compute = 0;                 // seconds of the step; 0: by the backend
  std::vector<std::string> workload;  // journals or logs of a job: its calls instead of a plan
  std::string output = "diapason-tuned";
  std::string command_line;  // for the store
};

// The backend, and why it was chosen ("" where the caller named it).
struct TuneGround {
  std::string backend;
  std::string why;
};
// Fills in what depends on the backend: ranks, sizes, operations, channels.
Result<TuneGround> FindGround(TuningRequest* request);

// What is tuned, once the ranks are known.
struct TuneGoal {
  std::vector<search::CallCase> call_cases;
  Mix mix;                                     // of the workload; empty without
  std::optional<measure::IterationSpec> step;  // where a step is tuned
  std::vector<std::string> notes;
};
Result<TuneGoal> FindGoal(const TuningRequest& request, const measure::Subject& subject);

// The calls of a recorded job: journals of the plugin, or logs of NCCL with NCCL_DEBUG_SUBSYS=COLL.
// Of several ranks' files, each call counts once.
struct RecordedCalls {
  std::vector<MixEntry> entries;
  std::vector<int64_t> ranks;  // of its communicators, where they are known
  uint64_t left_out = 0;       // calls of operations that cannot be tuned
  uint64_t unread = 0;         // records that were damaged, cut off, or dropped by their writer
  // What the job repeats, from the order of its calls; none in logs, or if nothing repeats.
  std::optional<RecordedStep> step;
};
Result<RecordedCalls> ReadWorkload(const std::vector<std::string>& files);

// Files that were written, with absolute paths. "" where a file was not written.
struct TuneFiles {
  std::string folder;
  std::string policy;
  std::string rules;  // Open MPI only
  std::string store;
  std::string report;
  std::string older;  // the policy of an earlier run; "": there was none, or it says the same
};

// Told while it runs; each may be empty. All are called by the thread that called RunTuning.
struct TuningEvents {
  std::function<void(const std::string& text)> warn;
  // The backend is known, no rank has been started.
  std::function<void(const TuneGround&)> found;
  // The ranks are there, nothing has been measured.
  std::function<void(const TuneGround&, const measure::Subject&, const TuneGoal&)> started;
  ProgressCallback progress;
};

struct TuningResult {
  TuneGoal goal;
  TuneOutcome outcome;
  TuneFiles files;            // only the folder and the store where nothing was decided
  bool older_policy = false;  // nothing was decided, and policy.conf is that of an earlier run
  bool relaunched = true;     // the verification had ranks of its own
  bool Decided() const { return !outcome.interrupted && !outcome.Undecided(); }
};

// On ranks that it starts. An error where another process tunes into the same folder.
Result<TuningResult> RunTuning(TuningRequest request, const TuningEvents& events);
// On a group that a launcher has started, called on rank 0; the others call
// measure::GroupMeasurer::Follow. `ground` as FindGround has returned it.
Result<TuningResult> RunTuningOn(Group* group, const TuningRequest& request,
                                 const TuneGround& ground, const TuningEvents& events);

}  // namespace diapason::tune
