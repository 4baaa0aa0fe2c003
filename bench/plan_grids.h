#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataset/store.h"
#include "model/grid.h"

namespace diapason::model {

// Made-up measurements for bench/plan_sizes.cc, of several shapes and kinds of noise. Their truth
// is known.

// How the gain of a configuration changes over sizes.
enum class GridShape {
  kCrossing,  // families take over from each other smoothly; the library switches at wrong sizes
  kTies,      // channel counts of a family are equal, and often equal to the library's own choice
  kDips,      // as kCrossing, and configurations have slow sizes of their own
  kRough,     // gains are random walks over sizes
  kNull,      // nothing is faster than the library's own choice; half is slower, half is equal
};
const char* ShapeName(GridShape shape);

enum class NoiseKind { kNormal, kHeavy, kHiccups };
const char* NoiseName(NoiseKind noise);

struct MadeGrid {
  GridShape shape = GridShape::kCrossing;
  NoiseKind noise = NoiseKind::kNormal;
  int repeats = 3;
  uint64_t seed = 1;
  size_t sizes = 18;
  std::vector<int> nodes = {1, 2};
  // The deviation of a gain from one number of nodes to the double, several nodes; negative: places
  // have nothing in common.
  double carried = -1;
  // A second run on another day, on which everything takes this many times as long; 0: none.
  double second_day = 0;
  bool second_day_has_default = true;
  double spread = 0.01;  // of a sample
  double strength = 1;   // a factor for all gains and losses
  bool few = false;      // one number of channels for every algorithm and protocol
};

// A place for every number of nodes, with some dozens of configurations.
dataset::StoreContents Make(const MadeGrid& made);

}  // namespace diapason::model
