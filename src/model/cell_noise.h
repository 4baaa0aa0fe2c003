#pragma once

#include <vector>

#include "model/grid.h"

namespace diapason::model {

// A cell of a grid while it is made, with its samples.
struct RawCell {
  MeasuredConfig cell;
  double spread = 0;         // standard deviation of one sample; from two or more repeats
  std::vector<double> logs;  // of the samples, sorted
};

// Sets noise and scale of every cell of a place, which is given size by size, from the repeats of
// all of them; without repeats, from the roughness over sizes.
NoiseTail SetNoise(std::vector<std::vector<RawCell>>* contexts);

}  // namespace diapason::model
