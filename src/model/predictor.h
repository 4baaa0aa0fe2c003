#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/features.h"
#include "model/forest.h"
#include "model/grid.h"
#include "model/local_model.h"
#include "model/trainer.h"

namespace diapason::model {

enum class Objective : uint8_t {
  kTime,          // log of the time, against the library's own choice
  kBusBandwidth,  // the original predictor: squared error on bus bandwidth
};
const char* ObjectiveName(Objective objective);  // "time", "busbw"
Result<Objective> ParseObjective(const std::string& name);

// What an estimate rests on, best first. Stored: values never change.
enum class Basis : uint8_t {
  kMeasured = 0,      // this configuration was measured at this size and place
  kInterpolated = 1,  // ... at a smaller and a larger size
  kPredicted = 2,     // others were, at this place
  kExtrapolated = 3,  // the size is outside of what was measured at this place
  kTransferred = 4,   // nothing was measured at this place
};
const char* BasisName(Basis basis);  // "measured", "interpolated", ...

struct PredictedConfig {
  Config config;
  Estimate estimate;
  Basis basis = Basis::kPredicted;
};

// What is known of one call: the library's own choice, and every configuration that may be chosen.
struct Prediction {
  CallPlace place;
  uint64_t bytes = 0;
  std::optional<Estimate> library_default;  // none where the default was never measured
  std::vector<PredictedConfig> candidates;
  // What interpolation between sizes may be off by here, for each side of a comparison.
  double bend = 0;
  // Whether the place's configurations differ by more than noise; see MeasuredPlace::Differs.
  bool contrast = true;
  // Doubt that all candidates share; nothing of it cancels. Infinite: nobody knows how well this
  // transfers.
  double shared = 0;
  std::vector<std::string> caveats;  // how far from the data this is
};

// A measured and completed table of one place: sizes that were measured, times every member of
// every family.
struct SceneTable {
  struct Value {
    float log_seconds = 0;
    float doubt = 0;
    bool measured = false;
  };
  struct FamilyTable {
    ConfigFamily family;
    int lowest = 0;  // channels that were measured; 0: the family was not
    int highest = 0;
    std::vector<Value> values;  // size by size, channels 1 to `top` of each (or one)
  };
  CallPlace place;
  std::vector<uint64_t> sizes;
  std::vector<std::optional<Estimate>> library_default;
  int top = 0;  // channels
  double bend = 0;
  bool contrast = true;
  std::vector<FamilyTable> families;

  size_t Width(const ConfigFamily& family) const {
    return family.channels ? static_cast<size_t>(top) : 1;
  }
};

struct FitOptions {
  Objective objective = Objective::kTime;
  TreeOptions trees;
  TreeOptions original{200, 6, 0.1, 1, 1, 1};  // of kBusBandwidth, as the original has them
  // Trees are grown so often, each time without another part of the configurations: where they
  // disagree, nobody knows.
  int members = 4;
  uint32_t seed = 1;
  // Families to be predicted at every place although they were not measured there.
  std::vector<ConfigFamily> families;
  // Find out how well what was learnt at other places holds: costs up to four more fits.
  bool check_transfer = true;
};

// What was learnt from a grid. Immutable after Fit or load; any number of threads may ask.
class Predictor {
 public:
  static Result<Predictor> Fit(const Grid& grid, const FitOptions& options);

  struct Request {
    CallPlace place;
    uint64_t bytes = 0;
    // Also members beyond the channels that were measured, up to the library's limit.
    bool beyond = false;
    // Only these; empty: what was measured at the place (or, at a new place, at any other).
    std::vector<ConfigFamily> families;
  };
  Prediction Look(const Request& request) const;

  // The trees' own answer (log time against the default; GB/s for kBusBandwidth), without the
  // tables: what R2 is computed of.
  double PredictRow(const CallPlace& place, uint64_t bytes, const Config& config) const;

  Objective objective() const { return objective_; }
  Library library() const { return library_; }
  const std::vector<SceneTable>& scenes() const { return scenes_; }
  const Features& features() const { return features_; }

 private:
  friend class ModelFile;
  friend class Fitter;
  Prediction LookHere(const Request& request, const SceneTable& scene) const;
  Prediction LookElsewhere(const Request& request) const;
  std::vector<ConfigFamily> FamiliesElsewhere(Collective collective) const;
  // Every member's estimate for channels 1..count of a family (or the one without): mean and
  // spread of the trees.
  std::vector<Estimate> Ask(const CallPlace& place, uint64_t bytes, const ConfigFamily& family,
                            int count) const;

  Objective objective_ = Objective::kTime;
  Library library_ = Library::kNccl;
  Features features_;
  std::vector<Forest> forests_;
  double offset_ = 0;           // added to every tree's answer
  double tree_error_ = 0;       // of configurations the trees did not see, at places they did
  double transfer_error_ = -1;  // ... at places they did not see; negative: unknown
  std::vector<SceneTable> scenes_;
};

}  // namespace diapason::model
