#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "dataset/store.h"
#include "measure/policy_check.h"
#include "policy/policy.h"
#include "search/search.h"
#include "tune/clock.h"
#include "tune/coverage.h"
#include "tune/verify.h"

namespace diapason::tune {

// Finds a policy for the calls of a job and verifies it: measures (an adaptive search), completes
// what was measured by a model, plans, measures between the sizes of the plan, and then runs the
// plan against the library's own choice on freshly started ranks. Rows that those runs do not
// confirm are not in the policy. Every size between the smallest and the largest is then in one
// range of TuneOutcome::coverage.

enum class Stage { kStarting, kMeasuring, kPlanning, kVerifying };
// Called often: where it is, the share of the whole that is done (0 to 1), and what is being done.
// Returning false ends the session in good order (Ctrl-C): what was measured is kept.
using ProgressCallback = std::function<bool(Stage stage, double share, const std::string& what)>;

struct SessionOptions {
  double seconds = 120;  // for everything
  // At most so many samples of the search, of the final round and of every verification; the last
  // two take the rounds that a judgement needs in any case. 0: as many as the time allows.
  int64_t samples = 0;
  uint64_t seed = 1;
  // How often the job makes the calls of a case; empty: all alike.
  std::function<double(const measure::Trial& trial)> weight;
  bool fit = true;       // a model too, for configurations that were not measured
  bool relaunch = true;  // verify on freshly started ranks; off: there are no others
  // Measure between neighbouring sizes too, where the policy would change something there. Not for
  // iterations; off where the sizes are all that will ever be called.
  bool between = true;
  TuneClock clock = SteadySeconds;  // for the budget
  std::string origin = "diapason tune";
  std::string command_line;  // for the store
};

// What is measured, by whom, and where it is kept.
struct TuneInputs {
  MeasurerSource source;
  std::function<Result<std::vector<search::CallCase>>(const measure::Subject& subject)> call_cases;
  dataset::SampleStore* store = nullptr;
};

// What became of one call.
enum class CallOutcome {
  kTuned,          // the policy runs something else, and that is faster
  kNothingBetter,  // the measurements support no change
  kNotConfirmed,   // a change was planned, and the verification did not confirm it
  kFailed,         // a change was planned, and it failed when it was run again
  kNoDefault,      // the library's own choice could not be measured
};
const char* CallOutcomeName(CallOutcome ending);  // "tuned", "nothing better", ...

struct TunedCall {
  measure::Trial trial;  // with the library's own choice
  double weight = 1;
  CallOutcome ending = CallOutcome::kNothingBetter;
  Config config;                              // what the policy runs here; default: left alone
  std::optional<Config> planned;              // what was to be verified
  measure::TimingFigure library;              // from the verification, else from the search
  std::optional<measure::PolicyCheck> check;  // where something was verified
  double expected_library = 0;                // seconds, by the last look before the verification
  double expected_tuned = 0;
  size_t tried = 0;      // configurations that gave a time here
  size_t failed = 0;     // and those that did not
  std::string why;       // one sentence without a full stop
  bool no_time = false;  // undecided: the budget ran out
  // Pairs of algorithm and protocol that the time did not suffice to try, here or at sizes near by;
  // counted only where the library's choice stays.
  size_t untried = 0;
  // Not a size of the request but one between two of them: TuneOutcome::between has these.
  bool between = false;
  // Other configurations to verify: what both neighbours run, and who came second.
  std::optional<Config> neighbours;
  std::optional<Config> second;
  double second_seconds = 0;

  // The measured gain: 1 if nothing changed.
  double Gain() const;
  // A change was verified, and its launches differ too much to say whether it is faster.
  bool CannotTell() const;
};

// What runs for a range of sizes of one operation.
struct CoveredRange {
  Operation operation = Operation::kAllReduce;
  Range range;  // its `stops` are not set
  bool operator<(const CoveredRange& other) const {
    return std::pair(operation, range.first) < std::pair(other.operation, other.range.first);
  }
};

struct TuneOutcome {
  measure::Subject subject;
  std::vector<TunedCall> lines;        // by operation and size
  std::vector<TunedCall> between;      // sizes between those, likewise
  std::vector<CoveredRange> coverage;  // every size from the smallest to the largest, once
  // Requests for more channels than this are one configuration here; 0: not known.
  int channel_cap = 0;
  policy::Policy policy;
  std::string policy_text;                    // as a file, with what was verified before every row
  std::optional<measure::PolicyCheck> whole;  // of an iteration: all changes together
  size_t samples = 0;                         // of the search
  int launches = 0;
  double seconds = 0;
  bool interrupted = false;
  // What would have given more: "a larger --budget gives it", or samples where those ran out first.
  std::string more;
  std::vector<std::string> notes;
  // What hung, crashed or computed wrong results, for people: "ring/blocking hung at allreduce
  // 64MiB".
  std::vector<std::string> failures;

  size_t Tuned() const;
  size_t OutOfTime() const;   // lines that are undecided, for want of time
  size_t CannotTell() const;  // and those whose launches differ too much
  // Nothing was found out, for want of time: no reason to throw an older policy away.
  bool Undecided() const;
  double MeanGain() const;  // geometric, over all lines that have a default
  // The verified gain where the policy changes something, sizes between included: geometric mean,
  // as the report has it.
  struct Changed {
    size_t sizes = 0;
    double gain = 1;
  };
  Changed ChangedGain() const;
  // The result in one or more sentences, the same in the terminal and in the report. A gain in it
  // was verified. `step`: what was tuned is a whole iteration.
  std::string Headline(bool step) const;
  // The time of all calls by their weights, before and after; only where there are weights.
  struct Total {
    double before = 0;
    double after = 0;
  };
  Total Weighted() const;
};

// Everything that is measured goes to the store: a run of source "tune", and one of source
// "verify". What failed in earlier runs of the store is not tried again, nor what one of them died
// of: everything measured so far and what is measured next are in the store before it is measured.
// REQUIRES: no other process tunes with this store.
Result<TuneOutcome> Tune(const TuneInputs& work, const SessionOptions& options,
                         const ProgressCallback& watch);

}  // namespace diapason::tune
