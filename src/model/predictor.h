#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/features.h"
#include "model/forest.h"
#include "model/gap.h"
#include "model/grid.h"
#include "model/local_model.h"
#include "model/trainer.h"

namespace diapason::model {

class Transfer;

enum class Objective : uint8_t {
  kTime,          // log of the time, relative to the library's own choice
  kBusBandwidth,  // the original predictor: squared error on bus bandwidth
};
const char* ObjectiveName(Objective objective);  // "time", "busbw"
Result<Objective> ParseObjective(const std::string& name);

// The basis of an estimate, best first. Stored: values never change.
enum class Basis : uint8_t {
  kMeasured = 0,      // this configuration was measured at this size and place
  kInterpolated = 1,  // ... at a smaller and a larger size
  kPredicted = 2,     // others were, at this place
  kExtrapolated = 3,  // the size is outside the measured range of this place
  kTransferred = 4,   // nothing was measured at this place
};
const char* BasisName(Basis basis);  // "measured", "interpolated", ...

struct PredictedConfig {
  Config config;
  Estimate estimate;
  Basis basis = Basis::kPredicted;
};

// The estimates for one call: the library's own choice, and every candidate.
struct Prediction {
  CallPlace place;
  uint64_t bytes = 0;
  std::optional<Estimate> library_default;  // nullopt if the default was never measured
  std::vector<PredictedConfig> candidates;
  // The interpolation error between sizes: of a gain, and of a time.
  double bend = 0;
  double time_bend = 0;
  // Whether the place's configurations differ by more than noise; see MeasuredSize::Differs.
  bool contrast = true;
  // A common error of all candidates that does not cancel. Infinite: how far the estimates are off
  // is unknown, and nothing is claimed.
  double shared = 0;
  std::vector<std::string> caveats;  // warnings about the distance from the data
};

// The completed table of one place: measured sizes times all members of all families.
struct SceneTable {
  struct Value {
    float log_seconds = 0;
    float doubt = 0;
    bool measured = false;
  };
  struct FamilyTable {
    ConfigFamily family;
    int lowest = 0;  // measured channels; 0: the family was not measured
    int highest = 0;
    std::vector<Value> values;  // by size, channels 1 to `top` of each (or one)
  };
  CallPlace place;
  std::vector<uint64_t> sizes;
  std::vector<std::optional<Estimate>> library_default;
  int top = 0;      // channels
  double bend = 0;  // GapUnit
  double time_bend = 0;
  EndUnits ends;
  bool contrast = true;
  std::vector<FamilyTable> families;

  size_t Width(const ConfigFamily& family) const {
    return family.channels ? static_cast<size_t>(top) : 1;
  }
};

struct FitOptions {
  Objective objective = Objective::kTime;
  TreeOptions trees;
  // For kBusBandwidth, as the original describes it: scikit-learn's GradientBoostingRegressor with
  // its defaults.
  TreeOptions original{.trees = 100, .depth = 3, .least = 1, .ridge = 0, .exact = true};
  // The size of the ensemble, each fitted without another part of the configurations: its spread is
  // the error estimate.
  int members = 4;
  uint32_t seed = 1;
  // Families to predict at every place although they were not measured there.
  std::vector<ConfigFamily> families;
};

// A model fitted to a grid. Immutable after Fit or load, and thread-safe.
class Predictor {
 public:
  static Result<Predictor> Fit(const Grid& grid, const FitOptions& options);

  struct Request {
    CallPlace place;
    uint64_t bytes = 0;
    // Also members beyond the measured channels, up to the library's limit.
    bool beyond = false;
    // Only these; empty: those measured at the place (or, at a new place, at any other).
    std::vector<ConfigFamily> families;
  };
  Prediction Look(const Request& request) const;

  // The trees' own prediction (log time relative to the default; GB/s for kBusBandwidth), without
  // the tables: used for R2.
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
  // Once the scenes are complete.
  void MakeTransfer();
  std::vector<ConfigFamily> FamiliesElsewhere(Collective collective) const;
  // The estimates for channels 1..count of a family (or the one without): mean and spread of the
  // ensemble.
  std::vector<Estimate> Ask(const CallPlace& place, uint64_t bytes, const ConfigFamily& family,
                            int count) const;

  Objective objective_ = Objective::kTime;
  Library library_ = Library::kNccl;
  Features features_;
  std::vector<Forest> forests_;
  double offset_ = 0;      // added to every tree's prediction
  double tree_error_ = 0;  // for unseen configurations at seen places
  std::vector<SceneTable> scenes_;
  std::shared_ptr<const Transfer> transfer_;  // of the scenes
};

}  // namespace diapason::model
