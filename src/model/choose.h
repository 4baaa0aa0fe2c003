#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/predictor.h"

namespace diapason::model {

struct ChoiceOptions {
  // A change must save this fraction of the time, and be an improvement with this confidence: for
  // configurations measured at this place (and size, or around it), and for others.
  double margin = 0.01;
  double confidence = 0.6;
  // The confidence for one measured at sizes around this one: with a gain whose error was measured
  // by hiding sizes, it is worth more to accept what is probably faster. Negative: `confidence`.
  double confidence_between = -1;
  double margin_unmeasured = 0.05;
  double confidence_unmeasured = 0.95;
  // Subtract the selection bias: the fastest of many equal candidates looks faster than it is.
  // Costs missed gains where the data are noisy.
  bool discount_luck = false;
  // A candidate's score is penalised by this many standard deviations.
  double caution = 0.5;
  // Among configurations this close to the best, the one with the fewest channels is taken: it
  // leaves most of the GPU to other work.
  double tolerance = 0;
};

// The choice for one call, with its reason.
struct ModelChoice {
  bool leave_default = true;
  std::optional<PredictedConfig> best;       // the best candidate, whether it is chosen or not
  std::optional<PredictedConfig> runner_up;  // the best of another family
  // Speed-up over the library's own choice: 1.2 is a fifth faster. nullopt if the default was not
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

// Whether the data support this candidate of the prediction against the library's own choice.
bool Supported(const Prediction& prediction, const PredictedConfig& candidate,
               const ChoiceOptions& options);

// The gain of a candidate over the library's own choice, as estimated; nullopt if the default was
// not measured.
std::optional<ModelChoice::Gain> GainOf(const Prediction& prediction,
                                        const PredictedConfig& candidate);
// The same for one that was chosen because of its estimate: less the lead that the luckiest among
// equals has.
std::optional<ModelChoice::Gain> GainOfChosen(const Prediction& prediction,
                                              const PredictedConfig& candidate);

ModelChoice Choose(const Prediction& prediction, const ChoiceOptions& options);

// The options of the original program: the best of all algorithms, protocols and channel counts.
// `coarse` first examines every fourth channel count and the last, and then those around the best,
// as the original does; this is a third of the candidates, with the same result where times are
// smooth in the channels.
struct ChannelSearchOptions {
  ChoiceOptions choice;
  bool coarse = false;
};
ModelChoice FindOptimalConfig(const Predictor& predictor, const Predictor::Request& request,
                              const ChannelSearchOptions& options);

}  // namespace diapason::model
