#pragma once

#include <string>
#include <vector>

#include "model/grid.h"

namespace diapason::model {

// A grid with a hidden part: the known data, and the questions.
struct Part {
  std::string name;
  Grid known;
  struct Question {
    size_t scene = 0;  // of the whole grid
    size_t context = 0;
  };
  std::vector<Question> questions;
};

// Every third size between the smallest and the largest, at three offsets.
std::vector<Part> WithoutSizes(const Grid& grid);
// All of one node count, once for each.
std::vector<Part> WithoutNodes(const Grid& grid);
// A random subset of the configurations stays; the default always does. Drawn for every size
// (`each`), or once for all sizes of a place.
std::vector<Part> WithoutConfigs(const Grid& grid, int draws, double known, bool each);

// All configurations of a scene but the default.
std::vector<Config> ConfigsOf(const MeasuredPlace& scene);

}  // namespace diapason::model
