#include "watch/baseline.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/stats.h"
#include "base/text.h"

namespace diapason::watch {
namespace {

constexpr size_t kMostSamples = 10000;
constexpr int kFileVersion = 1;

// The mean over the processes that have a value.
class MeanOf {
 public:
  void Add(double value) {
    sum_ += value;
    ++count_;
  }
  void Put(const char* name, Metrics* metrics) const {
    if (count_ > 0) (*metrics)[name] = sum_ / static_cast<double>(count_);
  }

 private:
  double sum_ = 0;
  size_t count_ = 0;
};

bool ReadNumber(const nlohmann::json& object, const char* key, double* value) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return false;
  *value = found->get<double>();
  return std::isfinite(*value);
}

std::string Value(const MetricKind& kind, double value) {
  const bool bytes = std::string_view(kind.name).find("bytes") != std::string_view::npos;
  return bytes ? Format("{:.1f} MiB", value / (1 << 20)) : Format("{:.4g}", value);
}

std::string Range(const MetricKind& kind, const MetricSummary& summary) {
  return Format("{} ({} to {}, {})", Value(kind, summary.median), Value(kind, summary.low),
                Value(kind, summary.high), Count(summary.samples, "sample"));
}

}  // namespace

const std::vector<MetricKind>& MetricKinds() {
  static const std::vector<MetricKind> kinds = {
      {"operations_per_s", "operations a second", false, 0.01,
       "Compare the journals of both runs (`diapason journal show`), and look at the other ranks: "
       "all are as slow as the slowest"},
      {"progress_cpu", "CPU time of progress threads", true, 0.05,
       "Look at what the progress threads do: `diapason watch PID --profile 10s`"},
      {"cpu", "CPU time of the process", true, 0.10,
       "Look at which threads take it: `diapason watch PID`"},
      {"wait_share", "time runnable threads had no CPU", true, 0.05,
       "Somebody else takes the CPUs, or too few are allowed: `diapason doctor --pid PID`"},
      {"involuntary_per_s", "times a second threads lost their CPU", true, 20,
       "Somebody else takes the CPUs, or too few are allowed: `diapason doctor --pid PID`"},
      {"resident_bytes", "resident memory", true, double(64 << 20),
       "Look at what grows: buffers of communicators (NCCL_BUFFSIZE, channels), or the program"},
      {"growth_bytes_per_min", "growth of resident memory a minute", true, double(8 << 20),
       "Look for communicators or buffers that are created again and again and never freed"},
      {"major_faults_per_s", "pages a second that had to be read from disk", true, 1,
       "Memory is short: look at the memory limit of the job"},
  };
  return kinds;
}

Metrics MetricsOf(const WatchView& view) {
  MeanOf operations;
  MeanOf progress;
  MeanOf cpu;
  MeanOf wait;
  MeanOf involuntary;
  MeanOf resident;
  MeanOf growth;
  MeanOf faults;
  for (const ProcessView& process : view.processes) {
    if (process.ended || process.first) continue;
    if (process.journal_read) operations.Add(process.operations_per_s);
    if (process.rate.progress_threads > 0) progress.Add(process.rate.progress_cpu);
    cpu.Add(process.rate.total.cpu());
    if (process.rate.total.has_wait) wait.Add(process.rate.total.wait);
    involuntary.Add(process.rate.total.involuntary_per_s);
    resident.Add(static_cast<double>(process.now.resident));
    if (process.growth_since > 0) growth.Add(process.growth);
    faults.Add(process.rate.major_faults_per_s);
  }
  Metrics metrics;
  operations.Put("operations_per_s", &metrics);
  progress.Put("progress_cpu", &metrics);
  cpu.Put("cpu", &metrics);
  wait.Put("wait_share", &metrics);
  involuntary.Put("involuntary_per_s", &metrics);
  resident.Put("resident_bytes", &metrics);
  growth.Put("growth_bytes_per_min", &metrics);
  faults.Put("major_faults_per_s", &metrics);
  return metrics;
}

void MetricSamples::Add(const Metrics& metrics) {
  for (const auto& [name, value] : metrics) {
    std::vector<double>& samples = samples_[name];
    if (samples.size() == kMostSamples) samples.erase(samples.begin());
    if (std::isfinite(value)) samples.push_back(value);
  }
}

Baseline Summarize(const MetricSamples& samples) {
  Baseline baseline;
  for (const auto& [name, values] : samples.all()) {
    if (values.empty()) continue;
    MetricSummary summary;
    summary.samples = values.size();
    summary.median = Median(values);
    const Interval interval = MedianInterval95(values);
    summary.low = interval.low;
    summary.high = interval.high;
    summary.noise = RobustDeviation(values);
    baseline[name] = summary;
  }
  return baseline;
}

std::string BaselineJson(const Baseline& baseline, double interval_s) {
  nlohmann::ordered_json metrics = nlohmann::ordered_json::object();
  for (const auto& [name, summary] : baseline) {
    metrics[name] = {{"samples", summary.samples},
                     {"median", summary.median},
                     {"low", summary.low},
                     {"high", summary.high},
                     {"noise", summary.noise}};
  }
  nlohmann::ordered_json file = {{"type", "diapason-watch-baseline"},
                                 {"version", kFileVersion},
                                 {"interval_s", interval_s},
                                 {"metrics", std::move(metrics)}};
  return file.dump(2) + "\n";
}

Result<Baseline> ParseBaseline(std::string_view text, const std::string& name) {
  const nlohmann::json file = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const std::string start = "'" + name + "' is no baseline: ";
  if (!file.is_object() || !file.contains("type") || file["type"] != "diapason-watch-baseline") {
    return Invalid(start + "write one with --save-baseline");
  }
  if (!file.contains("version") || file["version"] != kFileVersion) {
    return Invalid(Format("{}its version is not {}", start, kFileVersion));
  }
  const auto metrics = file.find("metrics");
  if (metrics == file.end() || !metrics->is_object()) return Invalid(start + "it has no metrics");
  Baseline baseline;
  for (const auto& [key, value] : metrics->items()) {
    MetricSummary summary;
    double samples = 0;
    if (!value.is_object() || !ReadNumber(value, "samples", &samples) ||
        !ReadNumber(value, "median", &summary.median) || !ReadNumber(value, "low", &summary.low) ||
        !ReadNumber(value, "high", &summary.high) || !ReadNumber(value, "noise", &summary.noise) ||
        samples < 0 || samples > 1e9 || summary.low > summary.median ||
        summary.high < summary.median) {
      return Invalid(start + "metric '" + key.substr(0, 64) + "' is malformed");
    }
    summary.samples = static_cast<size_t>(samples);
    baseline[key] = summary;
  }
  return baseline;
}

std::vector<Finding> CompareWithBaseline(const Baseline& then, const Baseline& now, double margin) {
  std::vector<Finding> findings;
  for (const MetricKind& kind : MetricKinds()) {
    const auto before = then.find(kind.name);
    const auto after = now.find(kind.name);
    if (before == then.end()) continue;
    const std::string id = Format("watch.{}", kind.name);
    if (after == now.end()) {
      findings.push_back({id,
                          Severity::kNote,
                          Format("{}: in the baseline, and not to be seen now", kind.what),
                          {"baseline: " + Range(kind, before->second)},
                          ""});
      continue;
    }
    const MetricSummary& was = before->second;
    const MetricSummary& is = after->second;
    const std::vector<std::string> evidence = {"baseline: " + Range(kind, was),
                                               "now: " + Range(kind, is)};
    if (was.samples < kLeastSamples || is.samples < kLeastSamples) {
      findings.push_back({id, Severity::kNote,
                          Format("{}: too few samples to judge; {} are needed on both sides",
                                 kind.what, kLeastSamples),
                          evidence, ""});
      continue;
    }
    const double beyond = kind.higher_worse ? is.low - was.high : was.low - is.high;
    const double allowed = std::max(margin * std::abs(was.median), kind.least);
    const double change = was.median == 0 ? 0 : (is.median / was.median - 1) * 100;
    std::string title =
        Format("{}: {}, was {}", kind.what, Value(kind, is.median), Value(kind, was.median));
    if (was.median > 0) title += Format(" ({:+.0f} %)", change);
    const bool worse = beyond > 0 && std::abs(is.median - was.median) > allowed;
    findings.push_back({id, worse ? Severity::kWarning : Severity::kFine, std::move(title),
                        evidence, worse ? kind.advice : ""});
  }
  return findings;
}

}  // namespace diapason::watch
