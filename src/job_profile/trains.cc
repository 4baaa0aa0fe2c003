#include "job_profile/trains.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/stats.h"

namespace diapason::job_profile {
namespace {

struct Medians {
  double start = 0;
  double stop = 0;
  size_t role = 0;
  size_t count = 0;
};

std::vector<Medians> MediansOf(const Grid& grid) {
  std::vector<Medians> medians(grid.size());
  for (size_t p = 0; p < grid.size(); ++p) {
    std::vector<double> starts;
    std::vector<double> stops;
    for (const Span* span : grid[p]) {
      if (span == nullptr) continue;
      starts.push_back(span->start);
      stops.push_back(span->stop);
      medians[p].role = span->role;
    }
    medians[p].count = starts.size();
    if (starts.empty()) continue;
    medians[p].start = Median(std::move(starts));
    medians[p].stop = Median(std::move(stops));
  }
  return medians;
}

// The median over the iterations that have both; `missing` if none has.
template <typename Between>
double MedianOf(const Grid& grid, size_t first, size_t second, double missing, Between between) {
  std::vector<double> values;
  for (size_t i = 0; i < grid[first].size(); ++i) {
    const Span* one = grid[first][i];
    const Span* other = grid[second][i];
    if (one != nullptr && other != nullptr) values.push_back(between(*one, *other));
  }
  return values.empty() ? missing : Median(std::move(values));
}

// Whether the second usually starts when the first one stops.
bool BackToBack(const Grid& grid, size_t first, size_t second) {
  return MedianOf(grid, first, second, 1, [](const Span& one, const Span& other) {
           return std::abs(other.start - one.stop);
         }) <= kBackToBack;
}

double BetweenLaunches(const Grid& grid, size_t first, size_t second) {
  const double between = MedianOf(grid, first, second, 0, [](const Span& one, const Span& other) {
    return other.launched - one.launched;
  });
  return std::max(0.0, between);
}

}  // namespace

Grid MakeGrid(const std::vector<IterationSpans>& iterations, size_t positions) {
  Grid grid(positions, std::vector<const Span*>(iterations.size(), nullptr));
  for (size_t i = 0; i < iterations.size(); ++i) {
    for (const Span& span : iterations[i].spans) {
      if (span.position < positions) grid[span.position][i] = &span;
    }
  }
  return grid;
}

std::vector<Train> MakeTrains(const Grid& grid) {
  const std::vector<Medians> medians = MediansOf(grid);
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
      joined = BackToBack(grid, trains[t].positions.back(), p) ? t : trains.size();
    }
    if (joined < trains.size()) {
      trains[joined].positions.push_back(p);
    } else {
      trains.push_back({{p}, 0, false, {}});
    }
  }
  for (Train& train : trains) {
    const double end = medians[train.positions.back()].stop;
    const auto next = std::find_if(order.begin(), order.end(), [&](size_t p) {
      return medians[p].start >= end - kBackToBack / 5 && p != train.positions.back();
    });
    train.next_iteration = next == order.end();
    train.next = train.next_iteration ? order.front() : *next;
    for (size_t i = 1; i < train.positions.size(); ++i) {
      train.launches.push_back(BetweenLaunches(grid, train.positions[i - 1], train.positions[i]));
    }
    train.launches.push_back(
        train.next_iteration ? 0 : BetweenLaunches(grid, train.positions.back(), train.next));
  }
  return trains;
}

}  // namespace diapason::job_profile
