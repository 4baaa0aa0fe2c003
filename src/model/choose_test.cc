#include "model/choose.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/testing.h"

namespace diapason::model {
namespace {

// A millisecond by default, all known to a hundredth.
Outlook Simple() {
  Outlook outlook;
  outlook.bytes = 65536;
  outlook.standard = Estimate{std::log(1e-3), 0.01};
  return outlook;
}

void Add(const Config& config, double seconds, double doubt, Basis basis, Outlook* outlook) {
  outlook->candidates.push_back({config, {std::log(seconds), doubt}, basis});
}

const Config kRing8{kRing, kSimple, 8, 0};
const Config kRing4{kRing, kSimple, 4, 0};
const Config kTree8{kTree, kLl, 8, 0};

Choice Of(double seconds, double doubt, Basis basis, const ChoiceOptions& options = {}) {
  Outlook outlook = Simple();
  Add(kRing8, seconds, doubt, basis, &outlook);
  return Choose(outlook, options);
}

TEST(Choose, NothingToChooseFrom) {
  const Choice choice = Choose(Simple(), {});
  EXPECT_TRUE(choice.leave_default);
  EXPECT_FALSE(choice.best.has_value());
  EXPECT_FALSE(choice.why.empty());
  EXPECT_EQ(choice.examined, 0u);
}

TEST(Choose, AGainHasToBeWorthTheMargin) {
  EXPECT_FALSE(Of(0.8e-3, 0.01, Basis::kMeasured).leave_default);
  EXPECT_FALSE(Of(0.98e-3, 0.01, Basis::kMeasured).leave_default);
  const Choice little = Of(0.995e-3, 0.001, Basis::kMeasured);
  EXPECT_TRUE(little.leave_default);
  EXPECT_TRUE(Has(little.why, "margin")) << little.why;
  EXPECT_NEAR(little.gain->expected, 1.005, 0.001) << "what is left is told as well";
  const Choice slower = Of(1.2e-3, 0.01, Basis::kMeasured);
  EXPECT_TRUE(slower.leave_default);
  EXPECT_TRUE(Has(slower.why, "nothing is faster")) << slower.why;
  EXPECT_EQ(slower.best->config, kRing8);
}

TEST(Choose, AGainHasToStandOutOfTheDoubt) {
  const Choice unsure = Of(0.8e-3, 1.5, Basis::kMeasured);
  EXPECT_TRUE(unsure.leave_default);
  EXPECT_TRUE(Has(unsure.why, "leave open")) << unsure.why;
  ChoiceOptions careful;
  careful.confidence = 0.999;
  EXPECT_TRUE(Of(0.8e-3, 0.1, Basis::kMeasured, careful).leave_default);
  EXPECT_FALSE(Of(0.8e-3, 0.1, Basis::kMeasured).leave_default);
  // The default's own doubt, that of lines between sizes, and what all share count as well.
  for (double Outlook::*const member : {&Outlook::bend, &Outlook::shared}) {
    Outlook outlook = Simple();
    Add(kRing8, 0.8e-3, 0.01, Basis::kMeasured, &outlook);
    outlook.*member = 1.5;
    EXPECT_TRUE(Choose(outlook, {}).leave_default);
    outlook.*member = INFINITY;
    EXPECT_TRUE(Choose(outlook, {}).leave_default);
  }
  Outlook outlook = Simple();
  Add(kRing8, 0.8e-3, 0.01, Basis::kMeasured, &outlook);
  outlook.standard->doubt = 1.5;
  EXPECT_TRUE(Choose(outlook, {}).leave_default);
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
  Outlook outlook = Simple();
  Add(kRing8, 0.8e-3, 0.001, Basis::kMeasured, &outlook);
  outlook.contrast = false;
  const Choice choice = Choose(outlook, {});
  EXPECT_TRUE(choice.leave_default);
  EXPECT_TRUE(Has(choice.why, "noise")) << choice.why;
}

TEST(Choose, TheBestOfThoseThatAreSupported) {
  Outlook outlook = Simple();
  // Looks best, but nobody knows; the second is sure.
  Add(kTree8, 0.5e-3, 0.9, Basis::kPredicted, &outlook);
  Add(kRing8, 0.85e-3, 0.01, Basis::kMeasured, &outlook);
  const Choice choice = Choose(outlook, {});
  EXPECT_FALSE(choice.leave_default);
  EXPECT_EQ(choice.best->config, kRing8);
  EXPECT_EQ(choice.runner_up->config, kTree8);
  EXPECT_EQ(choice.examined, 2u);
}

TEST(Choose, OfTwoAlikeTheBetterKnown) {
  Outlook outlook = Simple();
  Add(kRing8, 0.80e-3, 0.2, Basis::kMeasured, &outlook);
  Add(kRing4, 0.81e-3, 0.01, Basis::kMeasured, &outlook);
  EXPECT_EQ(Choose(outlook, {}).best->config, kRing4);
  ChoiceOptions bold;
  bold.caution = 0;
  EXPECT_EQ(Choose(outlook, bold).best->config, kRing8);
}

TEST(Choose, WithoutTheDefaultTheFastest) {
  Outlook outlook = Simple();
  outlook.standard.reset();
  Add(kRing8, 5e-3, 0.01, Basis::kMeasured, &outlook);
  Add(kTree8, 4e-3, 0.01, Basis::kMeasured, &outlook);
  const Choice choice = Choose(outlook, {});
  EXPECT_FALSE(choice.leave_default);
  EXPECT_EQ(choice.best->config, kTree8);
  EXPECT_FALSE(choice.gain.has_value());
  EXPECT_TRUE(Has(choice.why, "not measured")) << choice.why;
}

TEST(Choose, ToleranceKeepsToTheFamilyAndToWhatIsKnown) {
  Outlook outlook = Simple();
  Add(kRing8, 0.80e-3, 0.01, Basis::kMeasured, &outlook);
  Add(kRing4, 0.81e-3, 0.01, Basis::kMeasured, &outlook);
  Add({kRing, kSimple, 3, 0}, 0.90e-3, 0.01, Basis::kMeasured, &outlook);   // too slow
  Add({kRing, kSimple, 2, 0}, 0.80e-3, 0.01, Basis::kPredicted, &outlook);  // not measured
  Add({kTree, kLl, 1, 0}, 0.805e-3, 0.01, Basis::kMeasured, &outlook);      // another family
  ChoiceOptions options;
  EXPECT_EQ(Choose(outlook, options).best->config, kRing8);
  options.tolerance = 0.03;
  EXPECT_EQ(Choose(outlook, options).best->config, kRing4);
  options.tolerance = 0.2;
  EXPECT_EQ(Choose(outlook, options).best->config.channels, 3);
}

TEST(Choose, TheLuckiestOfManyIsNoGain) {
  Outlook outlook = Simple();
  for (int channels = 1; channels <= 30; ++channels) {
    Add({kRing, kSimple, channels, 0}, channels == 7 ? 0.97e-3 : 1e-3, 0.02, Basis::kMeasured,
        &outlook);
  }
  ChoiceOptions options;
  EXPECT_FALSE(Choose(outlook, options).leave_default);
  options.discount_luck = true;
  EXPECT_TRUE(Choose(outlook, options).leave_default);
  // One that stands alone had no luck.
  outlook.candidates[6].estimate.log_seconds = std::log(0.8e-3);
  EXPECT_FALSE(Choose(outlook, options).leave_default);
}

TEST(Choose, NormalQuantiles) {
  EXPECT_NEAR(NormalQuantile(0.5), 0, 1e-9);
  EXPECT_NEAR(NormalQuantile(0.975), 1.959964, 1e-5);
  EXPECT_NEAR(NormalQuantile(0.025), -1.959964, 1e-5);
  EXPECT_TRUE(std::isfinite(NormalQuantile(0)));
  EXPECT_TRUE(std::isfinite(NormalQuantile(1)));
}

}  // namespace
}  // namespace diapason::model
