#include "job_profile/exposure.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/stats.h"

namespace diapason::job_profile {
namespace {

constexpr size_t kLeastPoints = 8;
constexpr double kLeastVariation = 1e-4;  // of the median time
// On one stream a kernel starts so soon after the one before it if nothing else held it up.
constexpr double kBackToBack = 5e-6;
// A kernel that starts so soon after its launch, on an idle stream, waited for the host.
constexpr double kSoonAfterLaunch = 15e-6;
constexpr double kNormal90 = 1.645;
// With a smaller slope a collective is hidden, and slows the work beside it.
constexpr double kMostSlowed = 0.5;

struct Medians {
  double start = 0;
  double stop = 0;
  double launched = 0;
  size_t role = 0;
  size_t count = 0;
};

// The spans of every position: [position][iteration], nullptr where it is missing.
using Grid = std::vector<std::vector<const Span*>>;

Grid MakeGrid(const std::vector<IterationSpans>& iterations, size_t positions) {
  Grid grid(positions, std::vector<const Span*>(iterations.size(), nullptr));
  for (size_t i = 0; i < iterations.size(); ++i) {
    for (const Span& span : iterations[i].spans) {
      if (span.position < positions) grid[span.position][i] = &span;
    }
  }
  return grid;
}

std::vector<Medians> MediansOf(const Grid& grid) {
  std::vector<Medians> medians(grid.size());
  for (size_t p = 0; p < grid.size(); ++p) {
    std::vector<double> starts;
    std::vector<double> stops;
    std::vector<double> launches;
    for (const Span* span : grid[p]) {
      if (span == nullptr) continue;
      starts.push_back(span->start);
      stops.push_back(span->stop);
      launches.push_back(span->launched);
      medians[p].role = span->role;
    }
    medians[p].count = starts.size();
    if (starts.empty()) continue;
    medians[p].start = Median(std::move(starts));
    medians[p].stop = Median(std::move(stops));
    medians[p].launched = Median(std::move(launches));
  }
  return medians;
}

// The time of each span in which no span that started later runs.
std::vector<double> OwnTimes(const std::vector<Span>& spans) {
  std::vector<double> own(spans.size(), 0);
  std::vector<double> borders;
  for (const Span& span : spans) {
    borders.push_back(span.start);
    borders.push_back(span.stop);
  }
  std::sort(borders.begin(), borders.end());
  std::vector<size_t> order(spans.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return spans[a].start < spans[b].start; });
  std::vector<size_t> running;  // in the order of their starts
  size_t next = 0;
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    const double from = borders[i];
    const double to = borders[i + 1];
    while (next < order.size() && spans[order[next]].start <= from)
      running.push_back(order[next++]);
    std::erase_if(running, [&](size_t one) { return spans[one].stop <= from; });
    if (!running.empty()) own[running.back()] += to - from;
  }
  return own;
}

// Collectives that run back to back, and the position that follows them.
struct Train {
  std::vector<size_t> positions;  // in the order of time
  size_t next = 0;
  bool next_iteration = false;  // `next` is of the iteration after
};

std::vector<Train> MakeTrains(const std::vector<Medians>& medians) {
  std::vector<size_t> order;
  for (size_t p = 0; p < medians.size(); ++p) {
    if (medians[p].count >= kLeastPoints) order.push_back(p);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return medians[a].start < medians[b].start; });
  std::vector<Train> trains;
  for (const size_t p : order) {
    size_t joined = SIZE_MAX;
    for (size_t t = trains.size(); t-- > 0 && joined == SIZE_MAX;) {
      const Medians& last = medians[trains[t].positions.back()];
      if (last.role != medians[p].role) continue;
      joined = std::abs(medians[p].start - last.stop) <= kBackToBack ? t : trains.size();
    }
    if (joined < trains.size()) {
      trains[joined].positions.push_back(p);
    } else {
      trains.push_back({{p}, 0, false});
    }
  }
  for (Train& train : trains) {
    const double end = medians[train.positions.back()].stop;
    const auto next = std::find_if(order.begin(), order.end(), [&](size_t p) {
      return medians[p].start >= end - kBackToBack / 5 && p != train.positions.back();
    });
    train.next_iteration = next == order.end();
    train.next = train.next_iteration ? order.front() : *next;
  }
  return trains;
}

struct Points {
  std::vector<double> lengths;   // of the train
  std::vector<double> to_next;   // from its start to the next start
  std::vector<double> shortest;  // exposed at least, and at most, if what follows waits for it
  std::vector<double> longest;
  std::vector<double> delays;  // of the next one after its launch
};

// The calls of a group are launched together, when the input of all of them is there.
double StartOfGroup(const Train& train, const Grid& grid, size_t iteration, const Span& last) {
  double start = last.start;
  for (const size_t position : train.positions) {
    const Span* one = grid[position][iteration];
    if (one != nullptr && one->launched == last.launched) start = std::min(start, one->start);
  }
  return start;
}

Points PointsOf(const Train& train, const Grid& grid,
                const std::vector<IterationSpans>& iterations) {
  Points points;
  for (size_t i = 0; i < iterations.size(); ++i) {
    const Span* first = grid[train.positions.front()][i];
    const Span* last = grid[train.positions.back()][i];
    const bool wraps = train.next_iteration;
    if (wraps && i + 1 == iterations.size()) continue;
    const Span* next = grid[train.next][wraps ? i + 1 : i];
    if (first == nullptr || last == nullptr || next == nullptr) continue;
    const double shift = wraps ? iterations[i].length : 0;
    points.lengths.push_back(last->stop - first->start);
    points.to_next.push_back(next->start + shift - first->start);
    points.shortest.push_back(last->stop - StartOfGroup(train, grid, i, *last));
    points.longest.push_back(last->stop - std::clamp(last->launched, first->start, last->start));
    points.delays.push_back(next->start - next->launched);
  }
  return points;
}

// What the points of a train say.
struct Judged {
  Slope slope;
  double length = 0;  // medians; 0: no iteration has all of it
  double shortest = 0;
  double longest = 0;
  double delay = 0;
};

Judged Judge(const Points& points) {
  Judged one;
  if (points.lengths.empty()) return one;
  one.slope = MedianSlope(points.lengths, points.to_next);
  for (double* share : {&one.slope.value, &one.slope.low, &one.slope.high}) {
    *share = std::clamp(*share, 0.0, 1.0);
  }
  one.length = Median(points.lengths);
  one.shortest = Median(points.shortest);
  one.longest = Median(points.longest);
  one.delay = Median(points.delays);
  return one;
}

struct Usual {
  double share = 1;   // of the time that is exposed
  double slowed = 0;  // the slope of hidden collectives
  double least_delay = 0;
};

Usual UsualOf(const std::vector<Judged>& judged) {
  Usual usual;
  double all = 0;
  double exposed = 0;
  std::vector<double> slow;
  double least_delay = std::numeric_limits<double>::max();
  for (const Judged& one : judged) {
    if (one.length > 0) least_delay = std::min(least_delay, one.delay);
    if (!one.slope.known) continue;
    all += one.length;
    exposed += one.slope.value * one.length;
    if (one.slope.value < kMostSlowed) slow.push_back(one.slope.value);
  }
  if (all > 0) usual.share = exposed / all;
  if (!slow.empty()) usual.slowed = Median(std::move(slow));
  usual.least_delay = least_delay;
  return usual;
}

// The time of every position, all of it exposed for all we know.
std::vector<PositionTime> TotalsOf(const std::vector<IterationSpans>& iterations,
                                   size_t positions) {
  std::vector<std::vector<double>> own(positions);
  for (const IterationSpans& iteration : iterations) {
    const std::vector<double> times = OwnTimes(iteration.spans);
    for (size_t i = 0; i < times.size(); ++i) {
      if (iteration.spans[i].position < positions) {
        own[iteration.spans[i].position].push_back(times[i]);
      }
    }
  }
  std::vector<PositionTime> totals(positions);
  for (size_t p = 0; p < positions; ++p) {
    if (own[p].empty()) continue;
    // A position that few iterations have counts as often.
    const double often =
        static_cast<double>(own[p].size()) / static_cast<double>(iterations.size());
    totals[p].total = Median(std::move(own[p])) * often;
    totals[p].high = totals[p].total;
    totals[p].exposed = totals[p].total;
  }
  return totals;
}

}  // namespace

Slope MedianSlope(const std::vector<double>& x, const std::vector<double>& y) {
  constexpr size_t kMostPoints = 128;
  Slope slope;
  const size_t first = x.size() > kMostPoints ? x.size() - kMostPoints : 0;
  const size_t count = x.size() - first;
  if (count < kLeastPoints) return slope;
  const double least =
      kLeastVariation * Median({x.begin() + static_cast<std::ptrdiff_t>(first), x.end()});
  std::vector<double> slopes;
  for (size_t i = first; i < x.size(); ++i) {
    for (size_t j = i + 1; j < x.size(); ++j) {
      const double run = x[j] - x[i];
      if (std::abs(run) > least) slopes.push_back((y[j] - y[i]) / run);
    }
  }
  // Half of all pairs have to differ.
  if (slopes.size() < count * (count - 1) / 4) return slope;
  const auto n = static_cast<double>(count);
  // The interval of Theil and Sen: by the variance of Kendall's statistic.
  const double width = kNormal90 * std::sqrt(n * (n - 1) * (2 * n + 5) / 18);
  const auto size = static_cast<double>(slopes.size());
  const auto at = [&](double place) {
    const auto found =
        slopes.begin() + static_cast<std::ptrdiff_t>(std::clamp(place, 0.0, size - 1));
    std::nth_element(slopes.begin(), found, slopes.end());
    return *found;
  };
  slope.value = at((size - 1) / 2);
  slope.low = at((size - width) / 2);
  slope.high = at((size + width) / 2);
  slope.known = true;
  return slope;
}

std::vector<PositionTime> EstimateExposure(const std::vector<IterationSpans>& iterations,
                                           size_t positions) {
  std::vector<PositionTime> result = TotalsOf(iterations, positions);
  const Grid grid = MakeGrid(iterations, positions);
  const std::vector<Train> trains = MakeTrains(MediansOf(grid));
  std::vector<Judged> judged;
  for (const Train& train : trains) judged.push_back(Judge(PointsOf(train, grid, iterations)));
  const Usual usual = UsualOf(judged);
  for (size_t t = 0; t < trains.size(); ++t) {
    const Judged& one = judged[t];
    if (one.length <= 0) continue;
    Slope slope = one.slope.known ? one.slope : Slope{usual.share, 0, 1, false};
    // A collective is waited for or not: where the interval says which, the slope in it that means
    // just that is taken.
    const bool may_wait = slope.high >= 1;
    const bool may_hide = slope.low <= usual.slowed;
    if (may_wait != may_hide) slope.value = may_wait ? 1 : usual.slowed;
    const auto waited = [&](double share) {
      return std::max(0.0, (share - usual.slowed) / (1 - usual.slowed));
    };
    const double middle = (one.shortest + one.longest) / 2 / one.length;
    const double exposed = waited(slope.value) * middle;
    const double low = waited(slope.low) * one.shortest / one.length;
    const double high = slope.high * one.longest / one.length;
    for (const size_t p : trains[t].positions) {
      const double total = result[p].total;
      result[p].exposed = total * exposed;
      result[p].low = total * std::min(low, exposed);
      result[p].high = total * std::max(high, exposed);
      result[p].slowed = (total - result[p].exposed) * usual.slowed;
      result[p].host_bound =
          slope.value < kMostSlowed && one.delay < usual.least_delay + kSoonAfterLaunch;
    }
  }
  return result;
}

}  // namespace diapason::job_profile
