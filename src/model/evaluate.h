#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/choose.h"
#include "model/grid.h"
#include "policy/policy.h"

namespace diapason::model {

// What is hidden from the chooser.
enum class LeaveOut {
  kSizes,    // every third size between the smallest and the largest, three times
  kNodes,    // all of one node count, once for each
  kConfigs,  // a random subset of the configurations of a place stays; the default always does
  kCells,    // the same with a draw for every size: a sparse sweep
};
Result<LeaveOut> ParseLeaveOut(const std::string& name);

// The chooser.
enum class ChooserKind {
  kDefault,  // the library's own choice
  // the original predictor: trees on bus bandwidth, without the default among its choices
  kOriginal,
  kInterpolate,  // linear in log time over log size for every configuration; no answer elsewhere
  kBestKnown,    // the fastest configuration measured at this place and size
  kOurs,
  kPolicy,  // a file of rules
  kOracle,  // the fastest of all
};
const char* ChooserName(ChooserKind chooser);

// The quality of choices. Fractions are of the fastest measured configuration's speed.
struct ChoiceScore {
  double sum_log = 0;  // of fractions
  double worst = 1;
  std::string worst_at;
  double sum_log_default = 0;       // speed relative to the default
  double worst_default = INFINITY;  // ... if the printed digits distinguish them
  std::string worst_default_at;
  size_t contexts = 0;
  size_t with_default = 0;
  size_t improved = 0;  // by more than a hundredth, beyond the rounding of digits
  size_t harmed = 0;
  size_t unanswered = 0;  // no candidate: the default was taken

  double Mean() const;  // geometric
  double MeanAgainstDefault() const;
  void Add(const ChoiceScore& other);
};

struct Score {
  ChooserKind chooser = ChooserKind::kDefault;
  ChoiceScore all;
  std::vector<ChoiceScore> parts;  // by offset, node count or draw
  // Each question individually.
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
  double known = 0.25;  // fraction of the configurations
  FitOptions fit;
  ChoiceOptions choice;
  // Called before every fit: the index of the part, and their number.
  std::function<void(size_t part, size_t of)> progress;
};
Result<Evaluation> Evaluate(const Grid& grid, const EvaluateOptions& options);

// Scores a policy file on this grid, with nothing hidden. Rows with configurations that the data do
// not have count as the default, and are counted in `unknown`.
Result<Evaluation> EvaluatePolicy(const Grid& grid, const policy::Policy& policy, size_t* unknown);

// Scores a choice in a context where everything was measured.
void Record(const CallPlace& place, const MeasuredSize& context, const Config& chosen,
            ChoiceScore* tally);

// Linear interpolation; nullopt if the configuration was not measured around this size.
std::optional<Estimate> Interpolate(const MeasuredPlace& scene, uint64_t bytes,
                                    const Config& config);

}  // namespace diapason::model
