#include "dataset/summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/text.h"
#include "base/units.h"

namespace diapason::dataset {
namespace {

void Conclude(Contender* contender) {
  if (!contender->fine()) return;
  contender->median = Median(contender->seconds);
  contender->interval = MedianInterval95(contender->seconds);
  // A value that was printed with few digits may be off by half of the last one.
  contender->interval.low =
      std::min(contender->interval.low, contender->median) * std::max(0.0, 1 - contender->coarse);
  contender->interval.high =
      std::max(contender->interval.high, contender->median) * (1 + contender->coarse);
}

void Conclude(Contest* contest) {
  std::vector<Contender>& all = contest->contenders;
  for (Contender& contender : all) Conclude(&contender);
  std::stable_sort(all.begin(), all.end(), [](const Contender& a, const Contender& b) {
    if (a.fine() != b.fine()) return a.fine();
    return std::tie(a.median, a.point) < std::tie(b.median, b.point);
  });
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].point.IsDefault()) contest->standard = i;
  }
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

bool Contest::TiesWithBest(size_t contender) const {
  const Contender& best = contenders.front();
  const Contender& other = contenders[contender];
  return best.fine() && other.fine() && other.interval.low <= best.interval.high;
}

std::vector<Contest> Summarise(const Contents& contents) {
  struct Key {
    Point context;
    bool simulated;
    std::string library;
  };
  // Sizes grow inside what is otherwise one context.
  const auto order = [](const Key& key) {
    const Point& p = key.context;
    return std::tie(p.collective, p.kind, p.nodes, p.ranks, p.type, p.reduce, p.root, p.in_place,
                    p.workload, key.library, key.simulated, p.bytes);
  };
  const auto less = [&](const Key& a, const Key& b) { return order(a) < order(b); };
  std::map<Key, std::map<Point, Contender>, decltype(less)> found(less);
  for (const Record& record : contents.records) {
    const Sample& sample = record.sample;
    const Machine& machine = contents.runs[record.run].machine;
    Contender& contender =
        found[{WithoutConfig(sample.point), machine.simulated, machine.library}][sample.point];
    contender.point = sample.point;
    if (contender.runs.empty() || contender.runs.back() != record.run) {
      contender.runs.push_back(record.run);
    }
    if (sample.outcome == Outcome::kFine) {
      contender.seconds.push_back(sample.seconds);
      contender.coarse = std::max(contender.coarse, sample.coarse);
    } else {
      ++contender.failures;
      contender.failure = sample.outcome;
      contender.note = sample.note;
    }
  }
  std::vector<Contest> contests;
  for (auto& [key, contenders] : found) {
    Contest contest;
    contest.context = key.context;
    contest.simulated = key.simulated;
    contest.library = key.library;
    for (auto& [point, contender] : contenders) {
      contest.samples += contender.seconds.size() + contender.failures;
      contest.contenders.push_back(std::move(contender));
    }
    Conclude(&contest);
    contests.push_back(std::move(contest));
  }
  return contests;
}

std::string ContextText(const Point& point) {
  std::string text = point.collective;
  if (point.kind == Point::Kind::kIteration) {
    text = "iterations around " + text;
    if (!point.workload.empty()) text += " (" + point.workload + ")";
  }
  text += Format(", %s on %s, %s", Count(static_cast<size_t>(point.ranks), "rank").c_str(),
                 Count(static_cast<size_t>(point.nodes), "node").c_str(), point.type.c_str());
  if (!point.reduce.empty()) text += " " + point.reduce;
  if (point.root >= 0) text += Format(", root %d", point.root);
  if (point.kind == Point::Kind::kCollective && point.in_place) text += ", in place";
  return text;
}

std::string SizeText(uint64_t bytes) {
  const std::string text = FormatBytes(bytes);
  return text.ends_with('B') ? text : text + " B";
}

std::string TimeText(double seconds) {
  // Four digits, zeros too: columns of them can be compared at a glance.
  if (seconds < 0.9995e-6) return Format("%.0f ns", seconds * 1e9);
  if (seconds < 0.9995e-3) return Format("%#.4g us", seconds * 1e6);
  if (seconds < 0.9995) return Format("%#.4g ms", seconds * 1e3);
  return seconds < 999.5 ? Format("%#.4g s", seconds) : Format("%.0f s", seconds);
}

}  // namespace diapason::dataset
