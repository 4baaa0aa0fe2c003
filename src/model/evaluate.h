#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/choose.h"
#include "model/grid.h"
#include "policy/policy.h"

namespace diapason::model {

// What is hidden from those who choose.
enum class LeaveOut {
  kSizes,    // every third size between the smallest and the largest, three times
  kNodes,    // all of one node count, once for each
  kConfigs,  // all but a share of the configurations of a place, by lot; never the default
  kCells,    // the same with a lot for every size: a sweep that measured a little everywhere
};
Result<LeaveOut> ParseLeaveOut(const std::string& name);

// Who chooses.
enum class ChooserKind {
  kDefault,      // leaves it to the library
  kOriginal,     // trees on bus bandwidth, the default not among its choices
  kInterpolate,  // straight lines in log time over log size for every configuration; none elsewhere
  kBestKnown,    // the fastest of those that were measured at this very place and size
  kOurs,
  kPolicy,  // a file of rules
  kOracle,  // the fastest of all
};
const char* ChooserName(ChooserKind chooser);

// How good choices were. Fractions are of the fastest measured configuration's speed.
struct ChoiceScore {
  double sum_log = 0;  // of fractions
  double worst = 1;
  std::string worst_at;
  double sum_log_default = 0;       // speed against the default's
  double worst_default = INFINITY;  // ... where the printed digits tell them apart
  std::string worst_default_at;
  size_t contexts = 0;
  size_t with_default = 0;
  size_t improved = 0;  // by more than a hundredth, beyond what the digits hide
  size_t harmed = 0;
  size_t unanswered = 0;  // there was nothing to choose from: the default was taken

  double Mean() const;  // geometric
  double MeanAgainstDefault() const;
  void Add(const ChoiceScore& other);
};

struct Score {
  ChooserKind chooser = ChooserKind::kDefault;
  ChoiceScore all;
  std::vector<ChoiceScore> parts;  // by offset, node count or draw
  // Every question on its own.
  struct Each {
    CallPlace place;
    uint64_t bytes = 0;
    ChoiceScore tally;
  };
  std::vector<Each> each;
};

struct Evaluation {
  std::vector<std::string> parts;  // what each part is
  std::vector<Score> scores;
};

struct EvaluateOptions {
  LeaveOut leave_out = LeaveOut::kSizes;
  int draws = 20;
  double known = 0.25;  // share of the configurations
  FitOptions fit;
  ChoiceOptions choice;
  // Told before every fit: the part, and of how many.
  std::function<void(size_t part, size_t of)> progress;
};
Result<Evaluation> Evaluate(const Grid& grid, const EvaluateOptions& options);

// What a file of rules would do on this grid, nothing hidden. Rows that ask for something the data
// do not have count as the default, and are counted in `unknown`.
Result<Evaluation> EvaluatePolicy(const Grid& grid, const policy::Policy& policy, size_t* unknown);

// The choice's time in a context where everything was measured.
void Record(const CallPlace& place, const MeasuredSize& context, const Config& chosen,
            ChoiceScore* tally);

// Straight lines; nullptr estimate where the configuration was not measured around this size.
std::optional<Estimate> Interpolate(const MeasuredPlace& scene, uint64_t bytes,
                                    const Config& config);

}  // namespace diapason::model
