#include "model/choose.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/testing.h"

namespace diapason::model {
namespace {

// A millisecond by default, all known to a hundredth.
Prediction Simple() {
  Prediction prediction;
  prediction.bytes = 65536;
  prediction.library_default = Estimate{std::log(1e-3), 0.01};
  return prediction;
}

void Add(const Config& config, double seconds, double doubt, Basis basis, Prediction* prediction) {
  prediction->candidates.push_back({config, {std::log(seconds), doubt}, basis});
}

const Config kRing8{kRing, kSimple, 8, 0};
const Config kRing4{kRing, kSimple, 4, 0};
const Config kTree8{kTree, kLl, 8, 0};

ModelChoice Of(double seconds, double doubt, Basis basis, const ChoiceOptions& options = {}) {
  Prediction prediction = Simple();
  Add(kRing8, seconds, doubt, basis, &prediction);
  return Choose(prediction, options);
}

TEST(Choose, NothingToChooseFrom) {
  const ModelChoice choice = Choose(Simple(), {});
  EXPECT_TRUE(choice.leave_default);
  EXPECT_FALSE(choice.best.has_value());
  EXPECT_FALSE(choice.why.empty());
  EXPECT_EQ(choice.examined, 0u);
}

TEST(Choose, AGainHasToBeWorthTheMargin) {
  EXPECT_FALSE(Of(0.8e-3, 0.01, Basis::kMeasured).leave_default);
  EXPECT_FALSE(Of(0.98e-3, 0.01, Basis::kMeasured).leave_default);
  const ModelChoice little = Of(0.995e-3, 0.001, Basis::kMeasured);
  EXPECT_TRUE(little.leave_default);
  EXPECT_TRUE(Has(little.why, "margin")) << little.why;
  EXPECT_NEAR(little.gain->expected, 1.005, 0.001) << "what is left is told as well";
  const ModelChoice slower = Of(1.2e-3, 0.01, Basis::kMeasured);
  EXPECT_TRUE(slower.leave_default);
  EXPECT_TRUE(Has(slower.why, "nothing is faster")) << slower.why;
  EXPECT_EQ(slower.best->config, kRing8);
}

TEST(Choose, AGainHasToStandOutOfTheDoubt) {
  const ModelChoice unsure = Of(0.8e-3, 1.5, Basis::kMeasured);
  EXPECT_TRUE(unsure.leave_default);
  EXPECT_TRUE(Has(unsure.why, "leave open")) << unsure.why;
  ChoiceOptions careful;
  careful.confidence = 0.999;
  EXPECT_TRUE(Of(0.8e-3, 0.1, Basis::kMeasured, careful).leave_default);
  EXPECT_FALSE(Of(0.8e-3, 0.1, Basis::kMeasured).leave_default);
  // The default's own error, the interpolation error and the common error count as well.
  for (double Prediction::*const member : {&Prediction::bend, &Prediction::shared}) {
    Prediction prediction = Simple();
    Add(kRing8, 0.8e-3, 0.01, Basis::kMeasured, &prediction);
    prediction.*member = 1.5;
    EXPECT_TRUE(Choose(prediction, {}).leave_default);
    prediction.*member = INFINITY;
    EXPECT_TRUE(Choose(prediction, {}).leave_default);
  }
  Prediction prediction = Simple();
  Add(kRing8, 0.8e-3, 0.01, Basis::kMeasured, &prediction);
  prediction.library_default->doubt = 1.5;
  EXPECT_TRUE(Choose(prediction, {}).leave_default);
}

TEST(Choose, WhatWasNotMeasuredHasToBeBetterStill) {
  EXPECT_FALSE(Of(0.97e-3, 0.01, Basis::kInterpolated).leave_default);
  EXPECT_TRUE(Of(0.97e-3, 0.01, Basis::kPredicted).leave_default);
  EXPECT_FALSE(Of(0.8e-3, 0.01, Basis::kPredicted).leave_default);
  // In the middle of the doubt: enough for a measurement.
  EXPECT_FALSE(Of(0.9e-3, 0.2, Basis::kMeasured).leave_default);
  EXPECT_TRUE(Of(0.9e-3, 0.2, Basis::kExtrapolated).leave_default);
}

TEST(Choose, WhereNothingDiffersNothingIsChosen) {
  Prediction prediction = Simple();
  Add(kRing8, 0.8e-3, 0.001, Basis::kMeasured, &prediction);
  prediction.contrast = false;
  const ModelChoice choice = Choose(prediction, {});
  EXPECT_TRUE(choice.leave_default);
  EXPECT_TRUE(Has(choice.why, "noise")) << choice.why;
}

TEST(Choose, TheBestOfThoseThatAreSupported) {
  Prediction prediction = Simple();
  // Looks best, but is uncertain; the second is certain.
  Add(kTree8, 0.5e-3, 0.9, Basis::kPredicted, &prediction);
  Add(kRing8, 0.85e-3, 0.01, Basis::kMeasured, &prediction);
  const ModelChoice choice = Choose(prediction, {});
  EXPECT_FALSE(choice.leave_default);
  EXPECT_EQ(choice.best->config, kRing8);
  EXPECT_EQ(choice.runner_up->config, kTree8);
  EXPECT_EQ(choice.examined, 2u);
}

TEST(Choose, OfTwoAlikeTheBetterKnown) {
  Prediction prediction = Simple();
  Add(kRing8, 0.80e-3, 0.2, Basis::kMeasured, &prediction);
  Add(kRing4, 0.81e-3, 0.01, Basis::kMeasured, &prediction);
  EXPECT_EQ(Choose(prediction, {}).best->config, kRing4);
  ChoiceOptions bold;
  bold.caution = 0;
  EXPECT_EQ(Choose(prediction, bold).best->config, kRing8);
}

TEST(Choose, WithoutTheDefaultTheFastest) {
  Prediction prediction = Simple();
  prediction.library_default.reset();
  Add(kRing8, 5e-3, 0.01, Basis::kMeasured, &prediction);
  Add(kTree8, 4e-3, 0.01, Basis::kMeasured, &prediction);
  const ModelChoice choice = Choose(prediction, {});
  EXPECT_FALSE(choice.leave_default);
  EXPECT_EQ(choice.best->config, kTree8);
  EXPECT_FALSE(choice.gain.has_value());
  EXPECT_TRUE(Has(choice.why, "not measured")) << choice.why;
}

TEST(Choose, ToleranceKeepsToTheFamilyAndToWhatIsKnown) {
  Prediction prediction = Simple();
  Add(kRing8, 0.80e-3, 0.01, Basis::kMeasured, &prediction);
  Add(kRing4, 0.81e-3, 0.01, Basis::kMeasured, &prediction);
  Add({kRing, kSimple, 3, 0}, 0.90e-3, 0.01, Basis::kMeasured, &prediction);   // too slow
  Add({kRing, kSimple, 2, 0}, 0.80e-3, 0.01, Basis::kPredicted, &prediction);  // not measured
  Add({kTree, kLl, 1, 0}, 0.805e-3, 0.01, Basis::kMeasured, &prediction);      // another family
  ChoiceOptions options;
  EXPECT_EQ(Choose(prediction, options).best->config, kRing8);
  options.tolerance = 0.03;
  EXPECT_EQ(Choose(prediction, options).best->config, kRing4);
  options.tolerance = 0.2;
  EXPECT_EQ(Choose(prediction, options).best->config.channels, 3);
}

TEST(Choose, TheLuckiestOfManyIsNoGain) {
  Prediction prediction = Simple();
  for (int channels = 1; channels <= 30; ++channels) {
    Add({kRing, kSimple, channels, 0}, channels == 7 ? 0.97e-3 : 1e-3, 0.02, Basis::kMeasured,
        &prediction);
  }
  ChoiceOptions options;
  EXPECT_FALSE(Choose(prediction, options).leave_default);
  options.discount_luck = true;
  EXPECT_TRUE(Choose(prediction, options).leave_default);
  // A single fast candidate has no selection bias.
  prediction.candidates[6].estimate.log_seconds = std::log(0.8e-3);
  EXPECT_FALSE(Choose(prediction, options).leave_default);
}

}  // namespace
}  // namespace diapason::model
