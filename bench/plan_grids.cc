#include "plan_grids.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace diapason::model {
namespace {

constexpr double kHiccupShare = 0.03;  // of samples

struct MadeConfig {
  std::string algorithm;
  std::string protocol;
  int channels = 0;
};

std::vector<MadeConfig> Configs(bool few) {
  std::vector<MadeConfig> configs = {{"", "", 0}};
  for (const char* algorithm : {"ring", "tree"}) {
    for (const char* protocol : {"ll", "ll128", "simple"}) {
      for (const int channels : {4, 8, 16, 32, 64}) {
        if (few && channels != 16) continue;
        configs.push_back({algorithm, protocol, channels});
      }
    }
  }
  return configs;
}

// One place: log seconds of every configuration at every size.
class Truth {
 public:
  Truth(const MadeGrid& made, size_t place)
      : shape_(made.shape),
        random_(made.seed, 1000 + (made.carried >= 0 && made.nodes[place] > 1 ? 1 : place)),
        sizes_(made.sizes),
        configs_(Configs(made.few)),
        strength_(made.strength),
        per_family_(made.few ? 1 : 5),
        carried_(std::max(0.0, made.carried)) {
    while (2 << doublings_ <= made.nodes[place]) ++doublings_;
  }

  double LogSeconds(size_t config, size_t size) const {
    const double own = Base(size);
    return config == 0 ? own : own - strength_ * Gain(config, size) - Walked(config, size);
  }

 private:
  double Draw(uint64_t kind, uint64_t a, uint64_t b = 0) const {
    return random_.Normal(kind << 40 ^ a << 20 ^ b);
  }
  double Share(uint64_t kind, uint64_t a, uint64_t b = 0) const {
    return random_.Uniform(kind << 40 ^ a << 20 ^ b);
  }

  double Base(size_t size) const {
    const double bytes = std::exp2(12 + static_cast<double>(size));
    return std::log(2e-5 + bytes * 4e-12);
  }
  size_t Family(size_t config) const { return (config - 1) / per_family_; }

  // What the doublings of the nodes added to the gain of a family, for each quarter of the sizes.
  double Walked(size_t config, size_t size) const {
    double sum = 0;
    for (uint64_t k = 0; k < doublings_ && carried_ > 0; ++k) {
      sum += carried_ * Draw(12, 8 * Family(config) + 4 * size / sizes_, k);
    }
    return sum;
  }

  // A family is good around a size of its own; the library picks one family for each third.
  double Curve(size_t family, double size) const {
    const double centre = static_cast<double>(sizes_) * (Share(1, family) * 1.4 - 0.2);
    const double width = 3 + 4 * Share(2, family);
    return -0.5 * std::log1p((size - centre) * (size - centre) / (width * width));
  }
  double Channels(size_t config, double size) const {
    const double lane = std::log2(static_cast<double>(configs_[config].channels)) -
                        (2 + 4 * size / static_cast<double>(sizes_));
    return -0.04 * lane * lane;
  }
  size_t LibrarysFamily(size_t size) const {
    const double at = static_cast<double>(size) / static_cast<double>(sizes_);
    const double first = 0.2 + 0.3 * Share(3, 0);
    const double second = first + 0.1 + 0.4 * Share(3, 1);
    const uint64_t part = at < first ? 0 : at < second ? 1 : 2;
    return static_cast<size_t>(6 * Share(4, part));
  }

  double Crossing(size_t config, size_t size) const {
    const auto at = static_cast<double>(size);
    const size_t library = LibrarysFamily(size);
    // The library's channel count is good but not the best.
    return Curve(Family(config), at) + Channels(config, at) - Curve(library, at) + 0.03;
  }

  double Gain(size_t config, size_t size) const {
    switch (shape_) {
      case GridShape::kCrossing:
        return Crossing(config, size);
      case GridShape::kTies:
        return Curve(Family(config), static_cast<double>(size)) -
               Curve(LibrarysFamily(size), static_cast<double>(size));
      case GridShape::kDips:
        return Crossing(config, size) -
               (Share(5, config, size) < 0.08 ? 0.1 + 0.3 * Share(6, config, size) : 0);
      case GridShape::kRough: {
        double gain = 0.05 * Draw(7, config);
        for (size_t i = 0; i <= size; ++i) {
          gain += 0.08 * Draw(8, config, i) + 0.06 * Draw(9, Family(config), i);
        }
        return gain - 0.2;
      }
      case GridShape::kNull:
        return Share(10, config) < 0.5 ? 0 : -0.2 * Share(11, config, size);
    }
    return 0;
  }

  GridShape shape_;
  CounterRandom random_;
  size_t sizes_;
  std::vector<MadeConfig> configs_;
  double strength_ = 1;
  size_t per_family_ = 5;
  double carried_ = 0;
  uint64_t doublings_ = 0;
};

double NoiseOf(NoiseKind noise, double spread, const CounterRandom& random, uint64_t index) {
  const double normal = random.Normal(4 * index);
  switch (noise) {
    case NoiseKind::kNormal:
      return spread * normal;
    case NoiseKind::kHeavy: {
      // Student's distribution with two degrees of freedom.
      const double other = random.Normal(4 * index + 1);
      const double third = random.Normal(4 * index + 2);
      return spread * normal / std::sqrt((other * other + third * third) / 2 + 1e-6);
    }
    case NoiseKind::kHiccups:
      return spread * normal + (random.Uniform(4 * index + 1) < kHiccupShare
                                    ? std::log1p(3 * random.Uniform(4 * index + 2))
                                    : 0);
  }
  return 0;
}

}  // namespace

const char* ShapeName(GridShape shape) {
  constexpr const char* kNames[] = {"crossing", "ties", "dips", "rough", "null"};
  return kNames[static_cast<size_t>(shape)];
}

const char* NoiseName(NoiseKind noise) {
  constexpr const char* kNames[] = {"normal", "heavy tails", "hiccups"};
  return kNames[static_cast<size_t>(noise)];
}

dataset::StoreContents Make(const MadeGrid& made) {
  dataset::StoreContents contents;
  const std::vector<MadeConfig> configs = Configs(made.few);
  const CounterRandom random(made.seed, 2);
  uint64_t index = 0;
  const int days = made.second_day > 0 ? 2 : 1;
  for (int day = 0; day < days; ++day) {
    dataset::SampleRun run;
    run.id = "day " + std::to_string(day);
    run.machine.library = "rccl";
    contents.runs.push_back(run);
    for (size_t place = 0; place < made.nodes.size(); ++place) {
      const Truth truth(made, place);
      for (size_t size = 0; size < made.sizes; ++size) {
        for (size_t config = 0; config < configs.size(); ++config) {
          if (day > 0 && config == 0 && !made.second_day_has_default) continue;
          for (int repeat = 0; repeat < made.repeats; ++repeat) {
            dataset::Sample sample;
            sample.point.collective = "allreduce";
            sample.point.nodes = made.nodes[place];
            sample.point.ranks = 8 * sample.point.nodes;
            sample.point.bytes = uint64_t{4096} << size;
            sample.point.algorithm = configs[config].algorithm;
            sample.point.protocol = configs[config].protocol;
            sample.point.channels = configs[config].channels;
            sample.round = repeat;
            sample.at = 1e9 + 3e5 * day + static_cast<double>(index % 1000);
            sample.seconds = std::exp(truth.LogSeconds(config, size) +
                                      NoiseOf(made.noise, made.spread, random, index++) +
                                      (day > 0 ? std::log(made.second_day) : 0));
            contents.records.push_back({contents.runs.size() - 1, sample});
          }
        }
      }
    }
  }
  return contents;
}

}  // namespace diapason::model
