#pragma once

#include <cstdint>
#include <vector>

#include "tuner_v5.h"

namespace diapason::bench {

// What a tuner without a compiled table does: compare the call with one rule after the other.
struct ScanRule {
  int collective;
  uint64_t min_bytes;
  uint64_t max_bytes;
  int algorithm;
  int protocol;
  int channels;
  int nodes;
  int ranks;
  int pipe_ops;
  int reg_buff;
};

struct ScanContext {
  std::vector<ScanRule> rules;
  size_t nodes;
  size_t ranks;
};

// The same callback a plugin has; context is a ScanContext.
int LinearScan(void* context, int collective, size_t bytes, int pipe_ops, float** table,
               int algorithms, int protocols, int reg_buff, int* channels);

}  // namespace diapason::bench
