#include "model/grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "model/testing.h"

namespace diapason::model {
namespace {

using dataset::Sample;
using dataset::SampleOutcome;
using dataset::StoreContents;

constexpr uint64_t kSize = 1 << 20;
const Config kRing4{kRing, kSimple, 4, 0};

StoreContents Of(const std::vector<Sample>& samples, const std::string& library = "rccl") {
  StoreContents contents;
  AddRun(library, samples, &contents);
  return contents;
}

// Samples of one configuration, these times each.
std::vector<Sample> Ring(int channels, const std::vector<double>& seconds, double coarse = 0) {
  std::vector<Sample> samples;
  for (const double value : seconds) {
    samples.push_back(OneSample(kSize, "ring", channels, value));
    samples.back().coarse = coarse;
  }
  return samples;
}

std::vector<Sample> Together(std::vector<Sample> a, const std::vector<Sample>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const MeasuredConfig* Only(const Grid& grid, const Config& config) {
  return grid.scenes.empty() ? nullptr : grid.scenes[0].contexts[0].Find(config);
}

double NoiseOf(const std::vector<Sample>& samples, const Config& config) {
  const Result<Grid> grid = MakeGrid(Of(samples), {});
  if (!grid.ok() || Only(grid.value(), config) == nullptr) return NAN;
  return Only(grid.value(), config)->noise;
}

TEST(Grid, MediansByPlaceSizeAndConfiguration) {
  std::vector<Sample> samples = Ring(4, {3e-3, 1e-3, 2e-3});
  samples.push_back(OneSample(kSize, "", 0, 5e-3));
  samples.push_back(OneSample(kSize / 2, "ring", 4, 7e-3));
  samples.push_back(OneSample(kSize, "ring", 4, 9e-3));
  samples.back().point.nodes = 2;
  samples.back().point.ranks = 16;
  const Result<Grid> made = MakeGrid(Of(samples), {});
  ASSERT_TRUE(made.ok()) << made.status().message();
  const Grid& grid = made.value();
  EXPECT_EQ(grid.library, Library::kRccl);
  EXPECT_FALSE(grid.simulated);
  EXPECT_EQ(grid.samples, 6u);
  EXPECT_EQ(grid.CellCount(), 4u);
  ASSERT_EQ(grid.scenes.size(), 2u);
  EXPECT_EQ(PlaceText(grid.scenes[1].place), "allreduce, 16 ranks on 2 nodes");
  const MeasuredPlace* const scene = grid.Find({Collective::kAllReduce, 1, 8});
  ASSERT_NE(scene, nullptr);
  ASSERT_EQ(scene->contexts.size(), 2u);
  EXPECT_EQ(scene->contexts[0].bytes, kSize / 2) << "by size";
  EXPECT_FALSE(scene->contexts[0].library_default.has_value());
  const MeasuredSize& context = scene->contexts[1];
  ASSERT_TRUE(context.library_default.has_value());
  EXPECT_DOUBLE_EQ(context.cells[*context.library_default].log_seconds, std::log(5e-3));
  ASSERT_NE(context.Find(kRing4), nullptr);
  EXPECT_DOUBLE_EQ(context.Find(kRing4)->log_seconds, std::log(2e-3));
  EXPECT_EQ(context.Find(kRing4)->samples, 3u);
  EXPECT_EQ(context.Find({kRing, kSimple, 5, 0}), nullptr);
  EXPECT_EQ(grid.Find({Collective::kBroadcast, 1, 8}), nullptr);
}

TEST(Grid, CellsAreInOrderAndFound) {
  Recipe recipe;
  recipe.sizes = {kSize};
  recipe.configs = {{kRing, kLl, 8, 0}, {kRing, kLl, 2, 0}, {}, {kTree, kSimple, 3, 0}};
  recipe.seconds = [](const CallPlace&, uint64_t, const Config& c) {
    return 1e-3 * (2 + c.channels);
  };
  const Grid grid = MeasureGrid(recipe);
  ASSERT_EQ(grid.CellCount(), 4u);
  const MeasuredSize& context = grid.scenes[0].contexts[0];
  EXPECT_EQ(context.library_default, 0u) << "the library's own choice comes first";
  EXPECT_TRUE(std::is_sorted(context.cells.begin(), context.cells.end(),
                             [](const MeasuredConfig& a, const MeasuredConfig& b) {
                               return ConfigLess(a.config, b.config);
                             }));
  for (const Config& config : recipe.configs) {
    ASSERT_NE(context.Find(config), nullptr);
    EXPECT_NEAR(std::exp(context.Find(config)->log_seconds), 1e-3 * (2 + config.channels), 1e-12);
  }
}

TEST(Grid, NoiseFallsWithRepeatsAndGrowsWithSpread) {
  // Beside many cells that spread alike, so that what is usual stays the same.
  std::vector<Sample> usual;
  for (int channels = 10; channels < 20; ++channels) {
    usual = Together(usual, Ring(channels, {1e-3, 1.02e-3, 1.01e-3}));
  }
  const double two = NoiseOf(Together(usual, Ring(4, {1e-3, 1.02e-3})), kRing4);
  const double eight = NoiseOf(
      Together(usual, Ring(4, {1e-3, 1.02e-3, 1e-3, 1.02e-3, 1e-3, 1.02e-3, 1e-3, 1.02e-3})),
      kRing4);
  const double wide = NoiseOf(Together(usual, Ring(4, {1e-3, 1.3e-3})), kRing4);
  EXPECT_GT(two, 0);
  EXPECT_LT(eight, 0.7 * two);
  EXPECT_GT(wide, 2 * two);
  // One sample tells nothing about its spread: it has that of the others, which is small here.
  const double one = NoiseOf(Together(usual, Ring(4, {1e-3})), kRing4);
  EXPECT_NEAR(one, 0.01, 0.003);
  EXPECT_GT(one, two);
  // Where nothing was repeated, something is assumed.
  EXPECT_GT(NoiseOf(Ring(4, {1e-3}), kRing4), 0.01);
}

TEST(Grid, EqualRepeatsAreNotCertain) {
  EXPECT_GT(NoiseOf(Ring(4, {1e-3, 1e-3, 1e-3}), kRing4), 0);
}

TEST(Grid, CoarseDigitsAreNoise) {
  const double fine = NoiseOf(Ring(4, {1e-3, 1e-3, 1e-3}), kRing4);
  const double coarse = NoiseOf(Ring(4, {1e-3, 1e-3, 1e-3}, 0.05), kRing4);
  const double coarser = NoiseOf(Ring(4, {1e-3, 1e-3, 1e-3}, 0.1), kRing4);
  EXPECT_GT(coarse, fine + 0.01);
  EXPECT_NEAR(coarser, 2 * coarse, 0.01);
  // Repeating does not make a digit finer.
  const std::vector<double> many(30, 1e-3);
  EXPECT_NEAR(NoiseOf(Ring(4, many, 0.1), kRing4), coarser, 1e-6);
}

TEST(Grid, SeveralLibrariesAreAnErrorThatNamesThem) {
  StoreContents contents = Of(Ring(4, {1e-3}), "rccl");
  AddRun("nccl", Ring(4, {2e-3}), &contents);
  const Result<Grid> both = MakeGrid(contents, {});
  ASSERT_FALSE(both.ok());
  EXPECT_EQ(both.status().code(), ErrorCode::kInvalid);
  EXPECT_TRUE(Has(both.status().message(), "nccl, rccl")) << both.status().message();
  GridOptions options;
  options.library = Library::kNccl;
  const Result<Grid> one = MakeGrid(contents, options);
  ASSERT_TRUE(one.ok()) << one.status().message();
  EXPECT_EQ(one.value().library, Library::kNccl);
  ASSERT_NE(Only(one.value(), kRing4), nullptr);
  EXPECT_DOUBLE_EQ(Only(one.value(), kRing4)->log_seconds, std::log(2e-3));
  options.library = Library::kGloo;
  EXPECT_FALSE(MakeGrid(contents, options).ok()) << "none of them";
}

TEST(Grid, MeasuredAndSimulatedTogetherAreAnError) {
  StoreContents contents = Of(Ring(4, {1e-3}));
  AddRun("rccl", Ring(4, {2e-3}), &contents);
  contents.runs[1].machine.simulated = true;
  const Result<Grid> both = MakeGrid(contents, {});
  ASSERT_FALSE(both.ok());
  EXPECT_TRUE(Has(both.status().message(), "measured")) << both.status().message();
  EXPECT_TRUE(Has(both.status().message(), "simulated")) << both.status().message();
  contents.runs[0].machine.simulated = true;
  const Result<Grid> one = MakeGrid(contents, {});
  ASSERT_TRUE(one.ok());
  EXPECT_TRUE(one.value().simulated);
}

TEST(Grid, DataThatDoNotSayTheirLibrary) {
  const Result<Grid> guessed = MakeGrid(Of(Ring(4, {1e-3}), ""), {});
  ASSERT_TRUE(guessed.ok());
  EXPECT_EQ(guessed.value().library, Library::kNccl);
  EXPECT_TRUE(AnyHas(guessed.value().messages, "--library"));
  GridOptions options;
  options.library = Library::kRccl;
  const Result<Grid> told = MakeGrid(Of(Ring(4, {1e-3}), ""), options);
  ASSERT_TRUE(told.ok());
  EXPECT_EQ(told.value().library, Library::kRccl);
  EXPECT_TRUE(told.value().messages.empty());
}

TEST(Grid, WhatDoesNotSayItsLibraryIsNotLostInSilence) {
  StoreContents contents = Of(Ring(4, {1e-3, 1e-3}));
  AddRun("", Ring(8, {2e-3}), &contents);
  const Result<Grid> grid = MakeGrid(contents, {});
  ASSERT_TRUE(grid.ok()) << grid.status().message();
  EXPECT_EQ(grid.value().library, Library::kRccl);
  EXPECT_NE(Only(grid.value(), kRing4), nullptr);
  EXPECT_TRUE(grid.value().CellCount() == 2 || AnyHas(grid.value().messages, "1 sample"));
}

TEST(Grid, ContrastTellsNoiseFromDifferences) {
  Recipe recipe;
  recipe.sizes = Doublings(4096, 12);
  recipe.configs = WithChannels(kRing, kSimple, {1, 2, 4, 8, 16, 32});
  recipe.configs.push_back({});
  recipe.noise = 0.02;
  const auto scene = [&](double difference) {
    recipe.seconds = [difference](const CallPlace&, uint64_t bytes, const Config& config) {
      return (1e-5 + static_cast<double>(bytes) * 1e-11) *
             (config.channels == 8 ? 1 - difference : 1);
    };
    return MeasureGrid(recipe).scenes[0];
  };
  for (recipe.seed = 1; recipe.seed <= 5; ++recipe.seed) {
    for (recipe.repeats = 3; recipe.repeats <= 6; ++recipe.repeats) {
      EXPECT_FALSE(scene(0).Differs()) << recipe.seed << ", " << recipe.repeats;
      EXPECT_GT(scene(0).Contrast(), 0.5);
      EXPECT_GT(scene(0.2).Contrast(), 3.4);
      EXPECT_TRUE(scene(0.2).Differs());
    }
  }
  // One configuration has nothing to differ from.
  recipe.configs.resize(1);
  EXPECT_EQ(scene(0.2).Contrast(), 0);
  EXPECT_FALSE(scene(0.2).Differs());
}

TEST(Grid, InPlaceOrOutOfPlaceWhereThereAreMoreSamples) {
  std::vector<Sample> samples = Ring(4, {1e-3, 1e-3, 1e-3});
  std::vector<Sample> inside = Ring(4, {2e-3, 2e-3});
  for (Sample& sample : inside) sample.point.in_place = true;
  const Result<Grid> out = MakeGrid(Of(Together(samples, inside)), {});
  ASSERT_TRUE(out.ok());
  EXPECT_DOUBLE_EQ(Only(out.value(), kRing4)->log_seconds, std::log(1e-3));
  EXPECT_TRUE(AnyHas(out.value().messages, "2 samples"));
  EXPECT_EQ(out.value().samples, 3u);
  // As many of both: in place.
  inside.push_back(inside.back());
  const Result<Grid> in = MakeGrid(Of(Together(samples, inside)), {});
  ASSERT_TRUE(in.ok());
  EXPECT_DOUBLE_EQ(Only(in.value(), kRing4)->log_seconds, std::log(2e-3));
  EXPECT_TRUE(AnyHas(in.value().messages, "3 samples"));
  // Of one kind only, nothing is said.
  EXPECT_TRUE(MakeGrid(Of(samples), {}).value().messages.empty());
}

TEST(Grid, UnknownWordsAreCounted) {
  std::vector<Sample> samples = Ring(4, {1e-3, 2e-3});
  samples.push_back(OneSample(kSize, "spiral", 4, 1e-6));
  samples.push_back(OneSample(kSize, "ring", 8, 1e-6));
  samples.back().point.protocol = "shout";
  samples.push_back(OneSample(kSize, "ring", 4, 1e-3));
  samples.back().point.collective = "sendrecv";
  const Result<Grid> grid = MakeGrid(Of(samples), {});
  ASSERT_TRUE(grid.ok()) << grid.status().message();
  EXPECT_EQ(grid.value().CellCount(), 1u);
  EXPECT_EQ(grid.value().samples, 2u);
  EXPECT_TRUE(AnyHas(grid.value().messages, "2 configurations"));
  EXPECT_TRUE(AnyHas(grid.value().messages, "RCCL"));
  EXPECT_TRUE(AnyHas(grid.value().messages, "sendrecv"));
}

TEST(Grid, WhatFailedOrHadAnEnvironmentIsLeftOut) {
  std::vector<Sample> samples = Ring(4, {1e-3});
  for (const SampleOutcome outcome : {SampleOutcome::kWrong, SampleOutcome::kHang,
                                      SampleOutcome::kCrash, SampleOutcome::kRefused}) {
    samples.push_back(OneSample(kSize, "ring", 4, 1e-6));
    samples.back().outcome = outcome;
    samples.push_back(OneSample(kSize, "tree", 4, std::nan("")));
    samples.back().outcome = outcome;
  }
  samples.push_back(OneSample(kSize, "", 0, 1e-6));
  samples.back().point.environment = "NCCL_MAX_NCHANNELS=2";
  const Result<Grid> grid = MakeGrid(Of(samples), {});
  ASSERT_TRUE(grid.ok()) << grid.status().message();
  EXPECT_EQ(grid.value().CellCount(), 1u);
  EXPECT_EQ(grid.value().samples, 1u);
  EXPECT_DOUBLE_EQ(Only(grid.value(), kRing4)->log_seconds, std::log(1e-3));
  EXPECT_FALSE(grid.value().scenes[0].contexts[0].library_default.has_value());
}

TEST(Grid, NothingToUseIsAnError) {
  EXPECT_EQ(MakeGrid({}, {}).status().code(), ErrorCode::kNotFound);
  std::vector<Sample> failed = Ring(4, {1e-3});
  failed[0].outcome = SampleOutcome::kHang;
  EXPECT_EQ(MakeGrid(Of(failed), {}).status().code(), ErrorCode::kNotFound);
  GridOptions iterations;
  iterations.kind = dataset::Point::Kind::kIteration;
  const Result<Grid> none = MakeGrid(Of(Ring(4, {1e-3})), iterations);
  ASSERT_FALSE(none.ok());
  EXPECT_TRUE(Has(none.status().message(), "iterations")) << none.status().message();
}

TEST(Grid, FingerprintIsOfTheMeasurementsAndNotOfTheirOrder) {
  Recipe recipe;
  recipe.places = {{Collective::kAllReduce, 1, 8}, {Collective::kAllGather, 2, 16}};
  recipe.sizes = Doublings(1024, 4);
  recipe.configs = WithChannels(kRing, kSimple, {1, 2, 4});
  recipe.configs.push_back({});
  recipe.repeats = 5;
  recipe.noise = 0.05;
  recipe.seconds = [](const CallPlace&, uint64_t bytes, const Config&) {
    return 1e-5 + static_cast<double>(bytes) * 1e-9;
  };
  const StoreContents contents = Measure(recipe);
  const uint64_t print = MakeGrid(contents, {}).value().Fingerprint();
  for (uint64_t seed = 0; seed < 5; ++seed) {
    StoreContents shuffled = contents;
    const CounterRandom random(seed, 1);
    for (size_t i = shuffled.records.size(); i > 1; --i) {
      std::swap(shuffled.records[i - 1], shuffled.records[random.Bits(i) % i]);
    }
    EXPECT_EQ(MakeGrid(shuffled, {}).value().Fingerprint(), print) << seed;
  }
  for (size_t i = 0; i < contents.records.size(); i += 7) {
    StoreContents changed = contents;
    changed.records[i].sample.seconds *= 1.001;
    EXPECT_NE(MakeGrid(changed, {}).value().Fingerprint(), print) << i;
  }
}

TEST(Grid, FamiliesAndMembers) {
  const Config config{kTree, kLl, 12, 4096};
  EXPECT_EQ(Member(FamilyOf(config), 12), config);
  EXPECT_EQ(FamilyOf(config), FamilyOf({kTree, kLl, 3, 4096}));
  EXPECT_NE(FamilyOf(config), FamilyOf({kTree, kLl, 0, 4096})) << "no channels asked for";
  EXPECT_NE(FamilyOf(config), FamilyOf({kTree, kLl128, 12, 4096}));
  EXPECT_NE(FamilyOf(config), FamilyOf({kTree, kLl, 12, 8192}));
  EXPECT_EQ(Member(FamilyOf({kRing, kSimple, 0, 0}), 9).channels, 0);
}

TEST(Grid, RealTable) {
  const Grid& grid = RealGrid();
  ASSERT_EQ(grid.scenes.size(), 2u);
  EXPECT_EQ(grid.library, Library::kRccl);
  EXPECT_EQ(grid.samples, 3564u);
  EXPECT_EQ(grid.CellCount(), 1188u);
  for (const MeasuredPlace& scene : grid.scenes) {
    EXPECT_EQ(scene.contexts.size(), 18u);
    for (const MeasuredSize& context : scene.contexts) {
      EXPECT_TRUE(context.library_default.has_value());
      // 0.32 GB/s is printed no finer than that.
      for (const MeasuredConfig& cell : context.cells) {
        EXPECT_GE(cell.noise, cell.coarse / 2);
        EXPECT_LT(cell.noise, 0.5);
      }
    }
  }
}

}  // namespace
}  // namespace diapason::model
