#pragma once

#include <cstddef>
#include <vector>

#include "job_profile/exposure.h"

// The collectives of iterations, put side by side. For exposure.cc.
namespace diapason::job_profile {

// Iterations that a position needs before anything is said about it.
constexpr size_t kLeastPoints = 8;
// On one stream a kernel starts so soon after the one before it if nothing else held it up: the
// times of the journal leave out the first and the last few microseconds of a kernel.
constexpr double kBackToBack = 14e-6;

// The spans of every position: [position][iteration], nullptr where it is missing.
using Grid = std::vector<std::vector<const Span*>>;

// They point into `iterations`.
Grid MakeGrid(const std::vector<IterationSpans>& iterations, size_t positions);

// Collectives that run back to back, and the position that follows them.
struct Train {
  std::vector<size_t> positions;  // in the order of time
  size_t next = 0;
  bool next_iteration = false;  // `next` is of the iteration after
  // From the launch of each by the host to that of the one after it, `next` after the last:
  // medians. 0: they were launched together, or `next` is of the iteration after.
  std::vector<double> launches;
};

// In the order of time; positions that too few iterations have are left out.
std::vector<Train> MakeTrains(const Grid& grid);

}  // namespace diapason::job_profile
