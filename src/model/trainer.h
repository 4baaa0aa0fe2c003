#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "model/forest.h"

namespace diapason::model {

// The training rows: `columns` features each, targets and weights.
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
  double share = 1;  // fraction of the rows that every tree sees
  double least = 4;  // minimum weight of a leaf
  uint32_t seed = 1;
  double ridge = 1;    // penalty on the squares of leaf values
  bool exact = false;  // every split is looked at, not those between 64 bins
};

// Boosted trees by XGBoost, squared error. Opens its module at the first call; the error says what
// is missing. The same rows and options give the same trees.
Result<Forest> TrainTrees(const TrainingSet& training_set, const TreeOptions& options);

// The interface of the module (libdiapason-train-xgboost.so). Plain types only, because it has its
// own copies of all libraries. Returns 0, or 1 with the reason in `error`.
struct TrainRequest {
  const char* version = nullptr;
  size_t rows = 0;
  size_t columns = 0;
  const float* values = nullptr;
  const float* targets = nullptr;
  const float* weights = nullptr;
  const TreeOptions* options = nullptr;
  void* sink = nullptr;
  // Called for every tree with arrays over its nodes. Return false to stop.
  bool (*take)(void* sink, size_t nodes, const int32_t* feature, const int32_t* left,
               const int32_t* right, const float* split) = nullptr;
};
inline constexpr char kTrainEntry[] = "diapason_train";
using TrainEntry = int (*)(const TrainRequest* request, char* error, size_t error_size);

}  // namespace diapason::model
