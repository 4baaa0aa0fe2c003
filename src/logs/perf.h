#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "logs/place.h"

namespace diapason::logs {

// One table of nccl-tests or rccl-tests, reduced to what is shown and judged: rows are not kept.
struct PerfTest {
  uint32_t file = 0;
  uint64_t line = 0;       // where it starts
  std::string collective;  // "all_reduce"; from the file's name in older logs
  std::string hosts[2];    // the first two
  int64_t host_count = 0;
  std::string device;      // "NVIDIA H100 80GB HBM3"
  int64_t ranks = 0;       // devices listed
  int64_t rank_zeros = 0;  // devices listed as rank 0
  int starts = 1;          // consecutive headers without rows between them
  int ends = 0;            // "Avg bus bandwidth"
  uint64_t rows = 0;
  bool moved = false;  // a row has a bus bandwidth above zero
  uint64_t smallest = 0;
  double smallest_us = 0;  // time of the smallest size, the better of both
  uint64_t largest = 0;
  double peak = 0;  // GB/s, bus bandwidth, the better of both
  uint64_t peak_bytes = 0;
  double average = 0;  // as printed; 0 if it was not
  uint64_t wrong = 0;  // wrong values, of all rows
  SourceLine wrong_place;
  SourceLine start;
  SourceLine zero;      // the first row, for tables without bandwidth
  int64_t headers = 0;  // "nccl-headers=22902", "nccl-library=22902"
  int64_t library = 0;
};

// Parses the lines of such tables in file order.
class Perf {
 public:
  static constexpr size_t kMost = 4096;
  std::vector<PerfTest> tests;
  uint64_t left_out = 0;

  void BeginFile(uint32_t file, std::string_view name);
  // `line` without labels of launchers; returns whether it is part of a table.
  bool Line(const Spot& spot, std::string_view line);
  // A piece of a row: the library's lines may be interleaved.
  void Fragment(std::string_view piece);
  bool open() const { return open_; }

 private:
  void Start(const Spot& spot, std::string_view line, bool named);
  bool Comment(const Spot& spot, std::string_view line);
  bool Row(const Spot& spot, std::string_view line);
  void Device(std::string_view text);

  std::string pieces_;
  std::string file_collective_;
  bool open_ = false;       // tests.back() belongs to this file
  bool announced_ = false;  // only its first line was seen so far
  int64_t headers_ = 0;
  int64_t library_ = 0;
};

// "all_reduce_perf", "allreduce", "AllReduce" -> "all_reduce"; "" for other text.
std::string CollectiveIn(std::string_view text);

}  // namespace diapason::logs
