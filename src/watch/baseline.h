#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "domain/finding.h"
#include "watch/watcher.h"

namespace diapason::watch {

// What is compared between runs. Each is the mean over the processes that are watched and have it,
// so that it does not matter how many ranks are looked at.
struct MetricKind {
  const char* name;    // "operations_per_s"
  const char* what;    // "operations a second"
  bool higher_worse;   // else lower is
  double least;        // a change smaller than this is of no interest
  const char* advice;  // what to look at when it got worse
};
const std::vector<MetricKind>& MetricKinds();

// By name; those that are not known at this look (no journal, no rates yet) are left out.
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

// What one metric was over a run: the median, the interval that holds the true median with 95 %
// where samples do not depend on each other, and the noise (1.4826 times the median distance from
// the median, as a standard deviation would be of normal noise).
struct MetricSummary {
  size_t samples = 0;
  double median = 0;
  double low = 0;
  double high = 0;
  double noise = 0;
};
using Baseline = std::map<std::string, MetricSummary>;

// Fewer samples than this tell nothing.
inline constexpr size_t kLeastSamples = 8;

Baseline Summarize(const MetricSamples& samples);
std::string BaselineJson(const Baseline& baseline, double interval_s);
Result<Baseline> ParseBaseline(std::string_view text, const std::string& name);

// A metric has got worse when the whole interval of its median now lies beyond the whole interval
// of then, and the medians differ by more than `margin` of the median then and by more than the
// metric's least change.
// Notes for metrics that cannot be judged.
std::vector<Finding> CompareWithBaseline(const Baseline& then, const Baseline& now,
                                         double margin = 0.10);

}  // namespace diapason::watch
