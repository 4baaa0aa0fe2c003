#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "model/forest.h"

namespace diapason::model {

// Rows to learn from: `columns` features each, what to predict, and how much each row counts.
struct TrainingSet {
  size_t columns = 0;
  std::vector<float> values;
  std::vector<float> targets;
  std::vector<float> weights;
  size_t rows() const { return targets.size(); }
};

struct TreeOptions {
  int trees = 100;
  int depth = 6;
  double rate = 0.1;
  double share = 1;  // of the rows that every tree sees
  double least = 4;  // weight that a leaf has to have
  uint32_t seed = 1;
};

// Boosted trees by XGBoost, squared error. Its module is opened at the first call; the error says
// what is missing where it cannot be. The same rows and options give the same trees.
Result<Forest> TrainTrees(const TrainingSet& training_set, const TreeOptions& options);

// What the module (libdiapason-train-xgboost.so) exports. Plain types only: it has its own copies
// of everything else. Returns 0, or 1 with the reason in `error`.
struct TrainRequest {
  const char* version = nullptr;
  size_t rows = 0;
  size_t columns = 0;
  const float* values = nullptr;
  const float* targets = nullptr;
  const float* weights = nullptr;
  const TreeOptions* options = nullptr;
  void* sink = nullptr;
  // Called for every tree with arrays over its nodes. Returns false to end it.
  bool (*take)(void* sink, size_t nodes, const int32_t* feature, const int32_t* left,
               const int32_t* right, const float* split) = nullptr;
};
inline constexpr char kTrainEntry[] = "diapason_train";
using TrainEntry = int (*)(const TrainRequest* request, char* error, size_t error_size);

}  // namespace diapason::model
