#include "model/testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/random.h"
#include "dataset/import.h"
#include "model/trainer.h"

namespace diapason::model {

dataset::StoreContents Measure(const Recipe& recipe) {
  dataset::StoreContents contents;
  std::vector<dataset::Sample> samples;
  const CounterRandom random(recipe.seed, 5);
  for (const CallPlace& place : recipe.places) {
    for (const uint64_t bytes : recipe.sizes) {
      for (const Config& config : recipe.configs) {
        for (int round = 0; round < recipe.repeats; ++round) {
          dataset::Sample sample;
          dataset::Point& point = sample.point;
          point.collective = CollectiveName(place.collective);
          point.nodes = place.nodes;
          point.ranks = place.ranks;
          point.bytes = bytes;
          if (config.algorithm != kKeep) {
            point.algorithm = AlgorithmName(recipe.library, place.collective, config.algorithm);
          }
          if (config.protocol != kKeep) {
            point.protocol = ProtocolName(recipe.library, config.protocol);
          }
          point.channels = config.channels;
          point.segment_bytes = config.segment_bytes;
          sample.round = round;
          sample.seconds = recipe.seconds(place, bytes, config) *
                           std::exp(recipe.noise * random.Normal(samples.size()));
          samples.push_back(std::move(sample));
        }
      }
    }
  }
  AddRun(std::string(LibraryName(recipe.library)), samples, &contents);
  return contents;
}

Grid MeasureGrid(const Recipe& recipe) {
  Result<Grid> grid = MakeGrid(Measure(recipe), {});
  return grid.ok() ? std::move(grid).value() : Grid{};
}

std::vector<uint64_t> Doublings(uint64_t first, size_t count) {
  std::vector<uint64_t> sizes;
  for (size_t i = 0; i < count; ++i) sizes.push_back(first << i);
  return sizes;
}

std::vector<Config> WithChannels(int algorithm, int protocol, const std::vector<int>& channels) {
  std::vector<Config> configs;
  for (const int count : channels) configs.push_back({algorithm, protocol, count, 0});
  return configs;
}

std::vector<Config> SomeConfigs() {
  std::vector<Config> configs = WithChannels(kRing, kSimple, {2, 8, 16, 32});
  for (const Config& config : WithChannels(kTree, kLl, {4, 8, 24})) configs.push_back(config);
  configs.push_back({});
  return configs;
}

Recipe Flat(std::function<double(uint64_t bytes, const Config& config)> factor) {
  Recipe recipe;
  recipe.sizes = Doublings(4096, 10);
  recipe.configs = SomeConfigs();
  recipe.seconds = [factor = std::move(factor)](const CallPlace& place, uint64_t bytes,
                                                const Config& config) {
    return (1e-5 * place.nodes + static_cast<double>(bytes) * 1e-11) * factor(bytes, config);
  };
  return recipe;
}

double BestIsAFifthFaster(uint64_t /*bytes*/, const Config& config) {
  if (config.IsDefault()) return 1;
  return config == kBest ? 0.8 : 1.1;
}

double Smooth(uint64_t bytes, const Config& config) {
  if (config.IsDefault()) return 2;
  const double best = std::clamp(std::log2(static_cast<double>(bytes)) - 10, 2.0, 30.0) *
                      (config.algorithm == kRing ? 1 : 0.7);
  const double off = std::log(config.channels / best);
  return (config.algorithm == kRing ? 1 : 1.1) * std::exp(0.15 * off * off);
}

dataset::Sample OneSample(uint64_t bytes, const std::string& algorithm, int channels,
                          double seconds) {
  dataset::Sample sample;
  sample.point.collective = "allreduce";
  sample.point.ranks = 8;
  sample.point.bytes = bytes;
  sample.point.algorithm = algorithm;
  sample.point.protocol = algorithm.empty() ? "" : "simple";
  sample.point.channels = channels;
  sample.seconds = seconds;
  return sample;
}

void AddRun(const std::string& library, const std::vector<dataset::Sample>& samples,
            dataset::StoreContents* contents) {
  dataset::SampleRun run;
  run.id = "run " + std::to_string(contents->runs.size());
  run.machine.library = library;
  for (const dataset::Sample& sample : samples) {
    contents->records.push_back({contents->runs.size(), sample});
  }
  contents->runs.push_back(std::move(run));
}

const Grid& RealGrid() {
  static const Grid grid = [] {
    const std::string path =
        DIAPASON_SOURCE_DIR "/tests/data/measurements/mi355x_allreduce_1n_2n.csv";
    const Result<std::string> text = ReadFile(path, 16u << 20);
    if (!text.ok()) return Grid{};
    dataset::ImportOptions options;
    options.library = "rccl";
    Result<dataset::Import> import = dataset::ImportText(text.value(), path, options);
    if (!import.ok()) return Grid{};
    Result<Grid> made = MakeGrid(dataset::ContentsOf(std::move(import).value()), {});
    return made.ok() ? std::move(made).value() : Grid{};
  }();
  return grid;
}

std::string WhyNoTrainer() {
  static const std::string why = [] {
    TrainingSet training_set;
    training_set.columns = 1;
    training_set.values = {1, 2};
    training_set.targets = {1, 2};
    TreeOptions options;
    options.trees = 1;
    return TrainTrees(training_set, options).status().message();
  }();
  return why;
}

FitOptions QuickFit() {
  FitOptions options;
  options.trees.trees = 30;
  options.trees.depth = 4;
  options.members = 3;
  return options;
}

Predictor Learn(const Grid& grid, const FitOptions& options) {
  Result<Predictor> fitted = Predictor::Fit(grid, options);
  EXPECT_TRUE(fitted.ok()) << fitted.status().message();
  return fitted.ok() ? std::move(fitted).value() : Predictor{};
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool AnyHas(const std::vector<std::string>& texts, const std::string& part) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return Has(text, part); });
}

}  // namespace diapason::model
