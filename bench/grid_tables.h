#pragma once

#include <string>
#include <vector>

#include "model/grid.h"

namespace diapason::model {

// Tables of measurements for bench/plan_sizes.cc and bench/coverage.cc, split by a rule that was
// fixed before any figure of the split was looked at: all-reduce is for development, every other
// collective is held out. Made-up grids have kDevelopmentSeed and the following for development,
// kHeldOutSeed and the following held out.
inline constexpr uint64_t kDevelopmentSeed = 1;
inline constexpr uint64_t kHeldOutSeed = 101;

struct NamedGrid {
  std::string name;
  bool held_out = false;
  Grid grid;
};

// The parts of a table, "FILE:LIBRARY", that have any places. Ends the program with a message if it
// cannot be read.
std::vector<NamedGrid> ReadTable(const std::string& argument);

// "development", "held out"
const char* SplitName(bool held_out);

// "12.5 %"; "-" of nothing.
std::string PercentOf(size_t count, size_t of);

// Ends the program.
[[noreturn]] void Die(const std::string& why);

}  // namespace diapason::model
