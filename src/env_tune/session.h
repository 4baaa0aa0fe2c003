#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "domain/vocabulary.h"
#include "env_tune/binding.h"
#include "env_tune/experiment.h"
#include "env_tune/metric.h"
#include "env_tune/runner.h"
#include "env_tune/state.h"
#include "host/machine.h"

namespace diapason::env_tune {

// What a run is judged by.
enum class Measure : uint8_t {
  kWallTime,   // of the command
  kPattern,    // a number in its output
  kBench,      // the command is our bench: the geometric mean of its times
  kIteration,  // the command is our iteration proxy: the median step
};
std::string_view MeasureName(Measure measure);

struct TuneRequest {
  std::vector<std::string> command;
  Measure measure = Measure::kWallTime;
  std::string pattern;
  MetricPick pick = MetricPick::kLast;
  ExperimentOptions design;
  // What to try; empty: the built-in list for the library and what binds.
  std::vector<KnobValue> candidates;
  std::optional<Library> library;  // nothing: none was found here
  int version = 0;
  std::optional<Binds> binds;
  double budget_s = 600;
  double timeout_s = 0;  // of a run; 0: ten times the warm-up's time, at least a minute
  std::string state;     // "": none is written
  bool resume = false;
  bool verbose = false;
};

// How it ended.
enum class TuneEnd : uint8_t {
  kDone,
  kBudget,       // the validation could not be finished in time
  kInterrupted,  // by a signal
  kBroken,       // the command fails by itself, or gives no figure
};

struct TuneResult {
  TuneEnd end = TuneEnd::kDone;
  Binding binding;
  std::vector<std::string> left_out;
  Experiment experiment;
  std::string broken;      // why; with the last lines the command wrote
  bool no_figure = false;  // broken, though the command succeeds: its output is not as expected
  double elapsed_s = 0;
  double run_s = 0;                // the wall time of a run of the default, median
  double cpus_busy = 0;            // of such a run
  int resumed_runs = 0;            // taken over from the state
  bool stopped_comparing = false;  // because of the budget

  explicit TuneResult(Experiment made) : experiment(std::move(made)) {}
};

// What changes a step: the command, the measure, the design and what is tried. A tuning can only be
// gone on with where this is the same.
std::string TuneFingerprint(const TuneRequest& request);

// Whether the state and a report (either may be "") could be written: to be asked before hours of
// runs, not after them.
Status CheckOutputs(const TuneRequest& request, const std::string& report);

// The whole tuning: warm-up, what binds, baseline, comparisons, validation; real processes, real
// time. `say` gets lines about its progress; `stop` ends it in order, with what is known by then.
// An error is something wrong with the request or the state; a command that fails is a result.
Result<TuneResult> RunTuning(const TuneRequest& request, const host::Machine& machine,
                             const std::function<void(const std::string&)>& say,
                             const std::atomic<bool>* stop);

}  // namespace diapason::env_tune
