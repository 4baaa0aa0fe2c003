#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/predictor.h"

namespace diapason::model {

struct ChoiceOptions {
  // A change has to be worth this share of the time, and be better at all with this confidence:
  // what was measured at this place (and size, or around it), and what was not.
  double margin = 0.01;
  double confidence = 0.6;
  double margin_unmeasured = 0.05;
  double confidence_unmeasured = 0.85;
  // The fastest of many that are really alike looks faster than it is: take that off its gain. What
  // it costs is a missed gain where the data are noisy.
  bool discount_luck = false;
  // A configuration that is less well known has to look better by this many standard deviations.
  double caution = 0.5;
  // Among configurations this close to the best, the one with the fewest channels is taken: it
  // leaves the most of the GPU to others.
  double tolerance = 0;
};

// What to do about one call, and why.
struct ModelChoice {
  bool leave_default = true;
  std::optional<PredictedConfig> best;       // what looks best, whether it is taken or not
  std::optional<PredictedConfig> runner_up;  // the best of another family
  // How much faster than the library's own choice: 1.2 is a fifth. None where the default was not
  // measured.
  struct Gain {
    double expected = 1;
    double low = 1;  // 90 % of it lies between
    double high = 1;
  };
  std::optional<Gain> gain;
  std::string why;      // one sentence without a full stop
  size_t examined = 0;  // candidates
};

ModelChoice Choose(const Prediction& prediction, const ChoiceOptions& options);

// The names of the original: the best of all algorithms, protocols and channel counts. `coarse`
// looks at every fourth channel count first and then around the best of them, as the original does;
// it looks at a third of the candidates, and finds the same where times are smooth in the channels.
struct ChannelSearchOptions {
  ChoiceOptions choice;
  bool coarse = false;
};
ModelChoice FindOptimalConfig(const Predictor& predictor, const Predictor::Request& request,
                              const ChannelSearchOptions& options);

// The z for which a normal value is below it with this probability.
double NormalQuantile(double probability);

}  // namespace diapason::model
