#include "job_profile/exposure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/stats.h"
#include "job_profile/trains.h"

namespace diapason::job_profile {
namespace {

constexpr double kLeastVariation = 1e-4;  // of the median time
// A kernel that starts so soon after its launch, or after this share of the time since the launch
// before it, waited for the host: the GPU had done everything else by then.
constexpr double kSoonAfterLaunch = 30e-6;
constexpr double kSoonShare = 0.25;
// Of the time in which the GPU waits for the host, what it computes. No record tells: kernels that
// the host launches no faster than they run leave the GPU idle for most of the time.
constexpr double kBusyBehindHost = 0.2;
constexpr size_t kLeastLonger = 3;
constexpr double kNearlyAll = 0.9;
constexpr double kSameLaunches = 0.1;
constexpr double kNormal90 = 1.645;
// With a smaller slope a collective is hidden, and slows the work beside it.
constexpr double kMostSlowed = 0.5;
constexpr double kSurelyWaits = 0.8;

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

// What is seen of a train in some iterations.
struct Points {
  std::vector<double> lengths;    // of the train
  std::vector<double> to_next;    // from its start to the next start
  std::vector<double> shortest;   // exposed at least, if what follows waits for it
  std::vector<double> launching;  // from its start until the host has launched all of it
};
struct AllPoints {
  Points behind_host;  // the next one started as soon as the host had launched it
  Points others;
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

AllPoints PointsOf(const Train& train, const Grid& grid,
                   const std::vector<IterationSpans>& iterations) {
  AllPoints all;
  for (size_t i = 0; i < iterations.size(); ++i) {
    const Span* first = grid[train.positions.front()][i];
    const Span* last = grid[train.positions.back()][i];
    const bool wraps = train.next_iteration;
    if (wraps && i + 1 == iterations.size()) continue;
    const Span* next = grid[train.next][wraps ? i + 1 : i];
    if (first == nullptr || last == nullptr || next == nullptr) continue;
    const double shift = wraps ? iterations[i].length : 0;
    const double launches = next->launched + shift - last->launched;
    const bool soon =
        next->start - next->launched < std::max(kSoonAfterLaunch, kSoonShare * launches);
    Points& points = soon ? all.behind_host : all.others;
    points.lengths.push_back(last->stop - first->start);
    points.to_next.push_back(next->start + shift - first->start);
    points.shortest.push_back(last->stop - StartOfGroup(train, grid, i, *last));
    points.launching.push_back(std::clamp(last->launched, first->start, last->start) -
                               first->start);
  }
  return all;
}

// What the points of a train say.
struct Judged {
  Slope slope;
  Slope behind_host;
  bool waits = false;  // what follows never came at its usual time if this one took longer
  double late = 0;     // the share of iterations in which what follows was launched late
  double length = 0;   // medians; 0: no iteration has all of it
  double shortest = 0;
  double launching = 0;
  double gap = 0;  // to what follows, unless that was launched late
};

Slope SlopeOf(const Points& points) {
  Slope slope = MedianSlope(points.lengths, points.to_next);
  for (double* share : {&slope.value, &slope.low, &slope.high}) {
    *share = std::clamp(*share, 0.0, 1.0);
  }
  return slope;
}

// Whether work that takes a while always stands between a train and what follows it, even if the
// train ended after the time at which that usually starts. Work that does not wait for the train
// would have been done by then.
bool AlwaysWaits(const std::vector<double>& lengths, const std::vector<double>& to_next) {
  const double usual = Median(to_next);
  size_t longer = 0;
  size_t waited = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < usual) continue;
    ++longer;
    waited += to_next[i] - lengths[i] > kBackToBack ? 1 : 0;
  }
  return longer >= kLeastLonger &&
         static_cast<double>(waited) >= kNearlyAll * static_cast<double>(longer);
}

Judged Judge(const AllPoints& points) {
  Judged one;
  const auto together = [&](std::vector<double> Points::*values) {
    std::vector<double> all = points.others.*values;
    const std::vector<double>& more = points.behind_host.*values;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const std::vector<double> lengths = together(&Points::lengths);
  if (lengths.empty()) return one;
  one.waits = AlwaysWaits(lengths, together(&Points::to_next));
  one.slope = SlopeOf(points.others);
  one.behind_host = SlopeOf(points.behind_host);
  one.late =
      static_cast<double>(points.behind_host.lengths.size()) / static_cast<double>(lengths.size());
  one.length = Median(lengths);
  one.shortest = Median(together(&Points::shortest));
  one.launching = Median(together(&Points::launching));
  std::vector<double> gaps;
  for (size_t i = 0; i < points.others.lengths.size(); ++i) {
    gaps.push_back(points.others.to_next[i] - points.others.lengths[i]);
  }
  if (!gaps.empty()) one.gap = std::max(0.0, Median(std::move(gaps)));
  return one;
}

struct Usual {
  double share = 1;   // of the time that is exposed
  double slowed = 0;  // the slope of hidden collectives
  // The work from one collective to the next, inside of an iteration, where the GPU was never
  // without it; negative: it is nowhere seen.
  double work = -1;
  double launching_work = 0;  // by the host, with the collective after it,
  double launching_call = 0;  // and of a collective alone, or of the least work
};

Usual UsualOf(const std::vector<Train>& trains, const std::vector<Judged>& judged) {
  Usual usual;
  double all = 0;
  double exposed = 0;
  std::vector<double> slow;
  std::vector<double> work;
  std::vector<double> launching;
  double least = std::numeric_limits<double>::max();
  for (const Train& train : trains) {
    for (const double launch : train.launches) {
      if (launch > 0) least = std::min(least, launch);
    }
  }
  for (size_t t = 0; t < judged.size(); ++t) {
    const Judged& one = judged[t];
    if (!one.slope.known) continue;
    all += one.length * (1 - one.late);
    exposed += one.slope.value * one.length * (1 - one.late);
    const bool hidden = one.slope.value < kMostSlowed;
    if (hidden && one.slope.high < kSurelyWaits) slow.push_back(one.slope.value);
    if (trains[t].next_iteration) continue;
    work.push_back(one.gap + (hidden ? one.length : 0));
    launching.push_back(trains[t].launches.back());
  }
  if (all > 0) usual.share = exposed / all;
  if (!slow.empty()) usual.slowed = Median(std::move(slow));
  if (work.empty()) return usual;
  usual.work = Median(std::move(work));
  usual.launching_work = Median(std::move(launching));
  usual.launching_call = std::min(least, usual.launching_work);
  return usual;
}

// The work between two collectives, by the time that the host took from the launch of one to that
// of the other: it launches less work in less time, and none in the time that a collective takes.
double WorkBetween(double launch, const Usual& usual) {
  if (launch <= 0) return 0;
  const double most = usual.launching_work - usual.launching_call;
  if (most < kSameLaunches * usual.launching_work) return usual.work;
  return usual.work * std::clamp((launch - usual.launching_call) / most, 0.0, 1.0);
}

// The work that is done beside collectives that run back to back, although what follows waits for
// the last one: an estimate.
double WorkBeside(const std::vector<Train>& trains, const std::vector<Judged>& judged, size_t train,
                  const Usual& usual) {
  const Judged& one = judged[train];
  const double most = std::max(0.0, one.length - one.shortest);
  if (most <= 0) return 0;
  // What led to its first one, and what follows the iteration's last one.
  const Judged* before = nullptr;
  const Judged* outside = nullptr;
  for (size_t t = 0; t < trains.size(); ++t) {
    if (judged[t].length <= 0) continue;
    if (trains[t].next == trains[train].positions.front()) before = &judged[t];
    if (trains[t].next_iteration) outside = &judged[t];
  }
  if (before != nullptr && before->late > 0.5) {
    return std::min(most, kBusyBehindHost * one.launching);
  }
  if (usual.work >= 0) {
    double work = 0;
    for (size_t i = 0; i + 1 < trains[train].launches.size(); ++i) {
      work += WorkBetween(trains[train].launches[i], usual);
    }
    return std::min(most, work);
  }
  return outside == nullptr ? most / 2 : std::min(outside->gap, most);
}

struct Share {
  double value = 0;
  double low = 0;
  double high = 0;
};

// Of the time of a train that what follows waits for, if the host was not late.
Share WaitedFor(const Judged& one, const Usual& usual) {
  Slope slope = one.slope.known ? one.slope : Slope{usual.share, 0, 1, false};
  // A collective is waited for or not: where the interval says which, the slope in it that means
  // just that is taken.
  const bool may_wait = slope.high >= 1;
  const bool may_hide = slope.low <= usual.slowed;
  if (may_wait != may_hide) slope.value = may_wait ? 1 : usual.slowed;
  const auto waited = [&](double share) {
    return std::max(0.0, (share - usual.slowed) / (1 - usual.slowed));
  };
  return {waited(slope.value), waited(slope.low), slope.high};
}

// The same if it was late. What waits for what is the same in all iterations, so that those in
// which the host was not late tell. Without them the GPU was busy for some of the time at most.
Share ExposedBehindHost(const Judged& one, const Share& usually, const Usual& usual) {
  const Slope& slope = one.behind_host;
  const double low = slope.known ? slope.low : 0;
  if (one.slope.known) return {usually.value, std::min(usually.low, low), 1};
  double busy = kBusyBehindHost;
  if (usual.work >= 0) busy = std::min(busy, usual.work / one.length);
  const double waited = one.waits ? 1 : slope.known ? slope.value : 0;
  return {1 - (1 - waited) * busy, low, 1};
}

// The time of every position, all of it exposed for all we know.
std::vector<PositionTime> TotalsOf(const std::vector<IterationSpans>& iterations,
                                   size_t positions) {
  std::vector<std::vector<double>> own(positions);
  std::vector<double> sums;
  for (const IterationSpans& iteration : iterations) {
    const std::vector<double> times = OwnTimes(iteration.spans);
    sums.push_back(std::accumulate(times.begin(), times.end(), 0.0));
    for (size_t i = 0; i < times.size(); ++i) {
      if (iteration.spans[i].position < positions) {
        own[iteration.spans[i].position].push_back(times[i]);
      }
    }
  }
  std::vector<PositionTime> totals(positions);
  double all = 0;
  for (size_t p = 0; p < positions; ++p) {
    if (own[p].empty()) continue;
    // A position that few iterations have counts as often.
    const double often =
        static_cast<double>(own[p].size()) / static_cast<double>(iterations.size());
    totals[p].total = Median(std::move(own[p])) * often;
    all += totals[p].total;
  }
  if (all <= 0) return totals;
  // The sum of medians is less than the median of sums where slow ones are far from the others.
  const double scale = Median(std::move(sums)) / all;
  for (PositionTime& one : totals) {
    one.total *= scale;
    one.high = one.exposed = one.total;
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
  const std::vector<Train> trains = MakeTrains(grid);
  std::vector<Judged> judged;
  for (const Train& train : trains) judged.push_back(Judge(PointsOf(train, grid, iterations)));
  const Usual usual = UsualOf(trains, judged);
  for (size_t t = 0; t < trains.size(); ++t) {
    const Judged& one = judged[t];
    if (one.length <= 0) continue;
    const Share usually = WaitedFor(one, usual);
    const Share late = ExposedBehindHost(one, usually, usual);
    const double beside = WorkBeside(trains, judged, t, usual) / one.length;
    const auto mean = [&](double if_late, double if_not) {
      return one.late * if_late + (1 - one.late) * if_not;
    };
    const double exposed = mean(late.value, usually.value) * (1 - beside);
    const double low = mean(late.low, usually.low) * one.shortest / one.length;
    const double high = mean(late.high, usually.high);
    for (const size_t p : trains[t].positions) {
      const double total = result[p].total;
      result[p].exposed = total * exposed;
      result[p].low = total * std::min(low, exposed);
      result[p].high = total * std::max(high, exposed);
      result[p].slowed = total * (1 - one.late) * (1 - usually.value) * usual.slowed;
      if (one.behind_host.known) {
        result[p].behind_host = total * one.late * (1 - one.behind_host.value);
      }
    }
  }
  return result;
}

}  // namespace diapason::job_profile
