#include "truth.h"

#include <algorithm>
#include <cstdio>

namespace played {
namespace {

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The time in [from, to) in which a collective ran, and of it that in which no compute did.
void Measure(const Cluster& cluster, int64_t from, int64_t to, double* busy, double* exposed) {
  struct Border {
    int64_t when;
    int collective;
    int compute;
  };
  std::vector<Border> borders;
  const auto add = [&](const std::vector<Interval>& intervals, bool collective) {
    for (const Interval& one : intervals) {
      const Interval cut{std::max(one.start, from), std::min(one.stop, to)};
      if (cut.stop <= cut.start) continue;
      borders.push_back({cut.start, collective ? 1 : 0, collective ? 0 : 1});
      borders.push_back({cut.stop, collective ? -1 : 0, collective ? 0 : -1});
    }
  };
  add(cluster.collectives(), true);
  add(cluster.compute(), false);
  std::sort(borders.begin(), borders.end(),
            [](const Border& a, const Border& b) { return a.when < b.when; });
  int collectives = 0;
  int computes = 0;
  int64_t before = from;
  *busy = *exposed = 0;
  for (const Border& border : borders) {
    const auto length = static_cast<double>(border.when - before) / 1000;
    if (collectives > 0) *busy += length;
    if (collectives > 0 && computes == 0) *exposed += length;
    collectives += border.collective;
    computes += border.compute;
    before = border.when;
  }
}

}  // namespace

void Truth::Begin(const Cluster& cluster, bool usual) {
  marks_.push_back({cluster.collectives().size(), true, usual});
}

void Truth::End(const Cluster& cluster) {
  marks_.push_back({cluster.collectives().size(), false, false});
}

std::string Truth::Json(const Cluster& cluster) const {
  std::vector<double> lengths, busy, exposed, calls, unusual;
  size_t iterations = 0;
  for (size_t i = 0; i < marks_.size(); ++i) {
    if (!marks_[i].inside) continue;
    ++iterations;
    if (i + 1 == marks_.size() || !marks_[i + 1].inside ||
        marks_[i + 1].collective >= cluster.collectives().size()) {
      continue;
    }
    const int64_t from = cluster.collectives()[marks_[i].collective].start;
    const int64_t to = cluster.collectives()[marks_[i + 1].collective].start;
    const double length = static_cast<double>(to - from) / 1000;
    if (!marks_[i].usual) {
      unusual.push_back(length);
      continue;
    }
    lengths.push_back(length);
    calls.push_back(static_cast<double>(marks_[i + 1].collective - marks_[i].collective));
    double ran = 0;
    double alone = 0;
    Measure(cluster, from, to, &ran, &alone);
    busy.push_back(ran);
    exposed.push_back(alone);
  }
  char text[512];
  std::snprintf(text, sizeof(text),
                "{\"iterations\": %zu, \"timed\": %zu, \"iteration_us\": %.3f, "
                "\"collective_us\": %.3f, \"exposed_us\": %.3f, \"calls\": %.0f, "
                "\"startup_calls\": %zu, \"unusual\": %zu, \"unusual_us\": %.3f}",
                iterations, lengths.size(), MedianOf(lengths), MedianOf(busy), MedianOf(exposed),
                MedianOf(calls), marks_.empty() ? size_t{0} : marks_.front().collective,
                unusual.size(), MedianOf(unusual));
  return text;
}

}  // namespace played
