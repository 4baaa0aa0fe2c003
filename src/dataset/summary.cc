#include "dataset/summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/interval_text.h"
#include "base/text.h"
#include "base/units.h"

namespace diapason::dataset {
namespace {

void Conclude(ConfigSummary* entry) {
  if (!entry->fine()) return;
  entry->median = Median(entry->seconds);
  entry->interval = MedianInterval95(entry->seconds);
  // A value printed with few digits may be off by half of the last one.
  entry->interval.low =
      std::min(entry->interval.low, entry->median) * std::max(0.0, 1 - entry->coarse);
  entry->interval.high = std::max(entry->interval.high, entry->median) * (1 + entry->coarse);
}

void Conclude(ConfigGroup* group) {
  std::vector<ConfigSummary>& all = group->entries;
  for (ConfigSummary& entry : all) Conclude(&entry);
  std::stable_sort(all.begin(), all.end(), [](const ConfigSummary& a, const ConfigSummary& b) {
    if (a.fine() != b.fine()) return a.fine();
    return std::tie(a.median, a.point) < std::tie(b.median, b.point);
  });
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].point.IsDefault()) group->standard = i;
  }
}

// The time of each run's first sample; 0 if its samples have none.
std::vector<double> StartsOf(const StoreContents& contents) {
  std::vector<double> starts(contents.runs.size(), 0);
  for (const StoredSample& record : contents.records) {
    const double at = record.sample.at;
    double& start = starts[record.run];
    if (at > 0 && (start == 0 || at < start)) start = at;
  }
  return starts;
}

// Days since the start of the run: a night's sweep is one block, whatever the calendar says.
int DayOf(const Sample& sample, double start) {
  constexpr double kDay = 86400;
  if (!(sample.at > 0) || !(start > 0)) return -1;
  return static_cast<int>(std::min(1e6, (sample.at - start) / kDay));
}

}  // namespace

Point WithoutConfig(Point point) {
  point.algorithm.clear();
  point.protocol.clear();
  point.channels = 0;
  point.segment_bytes = 0;
  point.environment.clear();
  return point;
}

bool ConfigGroup::TiesWithBest(size_t entry) const {
  const ConfigSummary& best = entries.front();
  const ConfigSummary& other = entries[entry];
  return best.fine() && other.fine() && other.interval.low <= best.interval.high;
}

std::vector<ConfigGroup> Summarise(const StoreContents& contents) {
  struct Key {
    Point context;
    bool simulated;
    std::string library;
  };
  // Sizes increase within an otherwise equal context.
  const auto order = [](const Key& key) {
    const Point& p = key.context;
    return std::tie(p.collective, p.kind, p.nodes, p.ranks, p.type, p.reduce, p.root, p.in_place,
                    p.workload, key.library, key.simulated, p.bytes);
  };
  const auto less = [&](const Key& a, const Key& b) { return order(a) < order(b); };
  std::map<Key, std::map<Point, ConfigSummary>, decltype(less)> found(less);
  const std::vector<double> starts = StartsOf(contents);
  for (const StoredSample& record : contents.records) {
    const Sample& sample = record.sample;
    const MachineInfo& machine = contents.runs[record.run].machine;
    ConfigSummary& entry =
        found[{WithoutConfig(sample.point), machine.simulated, machine.library}][sample.point];
    entry.point = sample.point;
    if (entry.runs.empty() || entry.runs.back() != record.run) {
      entry.runs.push_back(record.run);
    }
    if (sample.outcome == SampleOutcome::kFine) {
      entry.seconds.push_back(sample.seconds);
      entry.blocks.emplace_back(record.run, DayOf(sample, starts[record.run]));
      entry.coarse = std::max(entry.coarse, sample.coarse);
    } else {
      ++entry.failures;
      entry.failure = sample.outcome;
      entry.note = sample.note;
    }
  }
  std::vector<ConfigGroup> groups;
  for (auto& [key, entries] : found) {
    ConfigGroup group;
    group.context = key.context;
    group.simulated = key.simulated;
    group.library = key.library;
    for (auto& [point, entry] : entries) {
      group.samples += entry.seconds.size() + entry.failures;
      group.entries.push_back(std::move(entry));
    }
    Conclude(&group);
    groups.push_back(std::move(group));
  }
  return groups;
}

std::string ContextText(const Point& point) {
  std::string text = point.collective;
  if (point.kind == Point::Kind::kIteration) {
    text = "iterations around " + text;
    if (!point.workload.empty()) text += " (" + point.workload + ")";
  }
  text += Format(", {} on {}, {}", Count(static_cast<size_t>(point.ranks), "rank"),
                 Count(static_cast<size_t>(point.nodes), "node"), point.type);
  if (!point.reduce.empty()) text += " " + point.reduce;
  if (point.root >= 0) text += Format(", root {}", point.root);
  if (point.kind == Point::Kind::kCollective && point.in_place) text += ", in place";
  return text;
}

std::string SizeText(uint64_t bytes) {
  const std::string text = FormatBytes(bytes);
  return text.ends_with('B') ? text : text + " B";
}

std::string TimeText(double seconds) {
  // Four significant digits, with zeros, so that columns align.
  if (seconds < 0.9995e-6) return Format("{:.0f} ns", seconds * 1e9);
  if (seconds < 0.9995e-3) return Format("{:#.4g} us", seconds * 1e6);
  if (seconds < 0.9995) return Format("{:#.4g} ms", seconds * 1e3);
  return seconds < 999.5 ? Format("{:#.4g} s", seconds) : Format("{:.0f} s", seconds);
}

std::string TimeFigureText(double median, const Interval& interval, size_t samples) {
  if (samples < 2) return TimeText(median);
  // The thresholds of TimeText.
  const double unit = median < 0.9995e-6   ? 1e9
                      : median < 0.9995e-3 ? 1e6
                      : median < 0.9995    ? 1e3
                                           : 1;
  const auto text = [&](double seconds) {
    const double value = seconds * unit;
    return unit == 1e9 || value >= 999.95 ? Format("{:.0f}", value) : Format("{:#.4g}", value);
  };
  return TimeText(median) + " " + IntervalText(text(interval.low), text(interval.high), samples);
}

}  // namespace diapason::dataset
