#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "domain/finding.h"
#include "watch/watcher.h"

namespace diapason::watch {

// A metric that is compared between runs. Each is the mean over the watched processes that have it,
// so that the number of ranks does not matter.
struct MetricKind {
  const char* name;    // "operations_per_s"
  const char* what;    // "operations a second"
  bool higher_worse;   // else lower is
  double least;        // smaller changes are ignored
  const char* advice;  // what to check if it has got worse
};
const std::vector<MetricKind>& MetricKinds();

// By name; metrics that are unknown at this time (no journal, no rates yet) are left out.
using Metrics = std::map<std::string, double>;
Metrics MetricsOf(const WatchView& view);

// Samples of each metric, the last 10000 of them.
class MetricSamples {
 public:
  void Add(const Metrics& metrics);
  const std::map<std::string, std::vector<double>>& all() const { return samples_; }

 private:
  std::map<std::string, std::vector<double>> samples_;
};

// One metric over a run: the median, its 95 % confidence interval for independent samples, and the
// noise (1.4826 times the median absolute deviation, which estimates the standard deviation of
// normal noise).
struct MetricSummary {
  size_t samples = 0;
  double median = 0;
  double low = 0;
  double high = 0;
  double noise = 0;
};
using Baseline = std::map<std::string, MetricSummary>;

// Fewer samples are not evaluated.
inline constexpr size_t kLeastSamples = 8;

Baseline Summarize(const MetricSamples& samples);
std::string BaselineJson(const Baseline& baseline, double interval_s);
Result<Baseline> ParseBaseline(std::string_view text, const std::string& name);

// A metric has got worse if the whole interval of its median lies beyond the whole interval of the
// baseline, and the medians differ by more than `margin` of the baseline's and by more than the
// metric's least change. Adds notes for metrics that cannot be judged.
std::vector<Finding> CompareWithBaseline(const Baseline& then, const Baseline& now,
                                         double margin = 0.10);

}  // namespace diapason::watch
