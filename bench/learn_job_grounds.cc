// Recorded tables as the calls of a job see them.
#include <cmath>

#include "base/random.h"
#include "base/text.h"
#include "learn_grounds.h"

namespace diapason::learn {
namespace {

// Where nothing is faster, what is up to so many times as slow is as fast as the default.
constexpr double kTies = 1.1;
// The deviation of offsets. On one H200 with four ranks the first call after a change to one
// channel was 0.2 of the default's time too short on rank 0.
constexpr double kOffset = 0.15;

}  // namespace

Result<DataSet> JobGrounds(const std::string& path, const std::string& name, const JobNoise& job) {
  Result<DataSet> set = RecordedGrounds(path, name, false);
  if (!set.ok()) return set;
  const double noise = job.noise;
  set.value().what = Format(
      "recorded medians and deviations, further noise {:.0f} %, drift 5 %, 2 % spikes, channels "
      "later{}{}",
      100 * noise, job.reporting == 1 ? ", times of rank 0 alone, with offsets" : "",
      job.nothing_faster ? ", nothing is faster than the default" : "");
  const CounterRandom random(11, 5);
  uint64_t draw = 0;
  const CounterRandom offsets(12, 5);
  uint64_t offset = 0;
  for (Ground& ground : set.value().grounds) {
    ground.drift = 0.05;
    ground.staged = true;
    ground.reporting = job.reporting;
    if (job.nothing_faster) {
      for (Ground::Arm& arm : ground.arms) arm.ratio = arm.ratio < kTies ? 1 : arm.ratio;
    }
    // Enough of them for rare spikes.
    std::vector<float> factors;
    double sum = 0;
    for (size_t i = 0; i < kFactors; ++i) {
      const std::vector<float>& recorded = ground.arms[0].factors;
      float factor = recorded[random.Bits(draw++) % recorded.size()];
      factor *= static_cast<float>(std::exp(noise * random.Normal(2 * draw)));
      draw += 4;
      if (random.Uniform(draw++) < 0.02) {
        factor *= static_cast<float>(3 + 12 * random.Uniform(draw++));
      }
      factors.push_back(factor);
      sum += factor;
    }
    for (float& factor : factors) factor *= static_cast<float>(kFactors / sum);
    std::vector<Config> configs;
    for (const Ground::Arm& arm : ground.arms) configs.push_back(arm.config);
    for (Ground::Arm& arm : ground.arms) {
      arm.factors = factors;
      if (job.reporting == 1) arm.offset = kOffset * offsets.Normal(2 * offset++);
      arm.later = !arm.config.IsDefault() && !Usual(arm.config, configs);
    }
  }
  return set;
}

}  // namespace diapason::learn
