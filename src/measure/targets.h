#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "measure/measurer.h"

namespace diapason::measure {

// A stated goal. docs/commands/bench.md has the keys of a targets file.
struct Target {
  enum class Goal : uint8_t {
    kTime,          // seconds at most
    kBusBandwidth,  // bytes per second at least
    kLinkShare,     // of the link's bandwidth, at least
    kScaling,       // bus bandwidth of `ranks` against that of two ranks, at least
    kExposed,       // exposed communication of an iteration, as a share of its compute, at most
  };
  std::string name;
  Goal goal = Goal::kTime;
  double value = 0;    // in the goal's unit
  bool about = false;  // kTime: meant roughly; a quarter more still counts
  Operation operation = Operation::kAllReduce;
  uint64_t bytes = 0;
  std::string algorithm;  // "": the library's own choice
  int ranks = 0;          // kScaling
  std::string preset;     // kExposed: the iteration
};

// Reads a targets file. A key that is not known, a goal that is missing or there twice, a value
// that cannot be read are errors that name the target.
Result<std::vector<Target>> ParseTargets(const std::string& text, const std::string& name);

// "at most 500 us", "at least 90.00 GB/s", "at least 90 % of the link"
std::string GoalText(const Target& target);
// The measured value in the same words: "431 us".
std::string ValueText(const Target& target, double value);
bool Meets(const Target& target, double value);

}  // namespace diapason::measure
