#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace diapason::model {

// Boosted regression trees, as they are asked: flat arrays, no library behind them.
class Forest {
 public:
  struct Node {
    int32_t feature = -1;  // -1: a leaf
    float split = 0;       // to the left below it; a leaf's value
    int32_t left = -1;     // the right child follows it
  };

  size_t trees() const { return roots_.size(); }
  size_t nodes() const { return nodes_.size(); }

  // Adds a tree in XGBoost's form: arrays over its nodes, the root first, leaves without children
  // (-1). An error where that is no tree, or a feature is not below `features`.
  Status AddTree(std::span<const int32_t> feature, std::span<const int32_t> left,
                 std::span<const int32_t> right, std::span<const float> split, size_t features);

  double Predict(const float* row) const;
  // Adds the predictions for many rows that follow each other, `stride` values apart, to `out`. For
  // a few rows it is no faster than Predict; where neighbours differ in few features it is much
  // faster: a tree is walked once for all of them.
  // REQUIRES: every feature rises or falls from the first row to the last, or stays.
  void PredictMonotone(const float* rows, size_t count, size_t stride, double* out) const;

  // All of it in little-endian bytes, and back; `features` as above.
  std::string Bytes() const;
  static Result<Forest> FromBytes(std::string_view bytes, size_t features);

 private:
  struct Columns;
  void Walk(const Columns& columns, size_t first, size_t last, int32_t node, double* steps) const;

  std::vector<Node> nodes_;
  std::vector<int32_t> roots_;
};

}  // namespace diapason::model
