#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "search/replay.h"

namespace diapason::measure {

// What one subject of a grid offers, ready to be searched again and again.
struct Ground {
  std::string name;
  dataset::StoreContents contents;
  Subject subject;
  std::vector<search::CallCase> call_cases;
  // Seconds without noise, where they are known; else empty.
  std::map<dataset::Point, double> truth;
};

// Every subject of a CSV file with the columns num_nodes, num_gpus, collective, size_bytes, algo,
// proto, nchannels, repeat and busbw_ip, in any order.
Result<std::vector<Ground>> ReadGrid(const std::string& path);

// All configurations of a simulated cluster at 18 sizes, three repeats: log-normal noise of 3 to 10
// % (by configuration), and one sample in fifty takes up to twice its time or 4 ms longer.
Result<Ground> SimulateGrid(const std::string& cluster, Collective collective, Operation operation,
                            uint64_t seed);

Result<double> ParseNumber(std::string_view text);

}  // namespace diapason::measure
