#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "search_grids.h"

namespace diapason::measure {

struct Choice {
  std::vector<size_t> best;  // by case
  int64_t samples = 0;
  double planning = 0;  // seconds of processor time, where it is known
};

// A way to choose a candidate for every case from what an measurer serves within a budget of
// samples.
using Strategy =
    std::function<Result<Choice>(const Ground&, Measurer*, int64_t budget, uint64_t seed)>;

// By name: what is searched with, and what it is compared with.
//   one blind sample  of everything, whatever the budget; the fastest wins
//   exhaustive        everything there is, whatever the budget; Judge decides
//   random            as many as the budget allows, drawn; the fastest wins
//   halving           every case by itself, the better half sampled again; the fastest wins
//   adaptive          SearchAdaptively; Judge decides
//   and the methods of rivals/rival.h, every case by itself with its part of the budget
const std::vector<std::pair<std::string, Strategy>>& Strategies();

}  // namespace diapason::measure
