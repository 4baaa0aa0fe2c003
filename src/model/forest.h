#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace diapason::model {

// Boosted regression trees for prediction: flat arrays, without a library.
class Forest {
 public:
  struct Node {
    int32_t feature = -1;  // -1: a leaf
    float split = 0;       // values below it go left; a leaf's value
    int32_t left = -1;     // the right child follows the left one
  };

  size_t trees() const { return roots_.size(); }
  size_t nodes() const { return nodes_.size(); }

  // Adds a tree in XGBoost's form: arrays over its nodes, the root first, leaves without children
  // (-1). Fails if it is not a tree, or a feature is not below `features`.
  Status AddTree(std::span<const int32_t> feature, std::span<const int32_t> left,
                 std::span<const int32_t> right, std::span<const float> split, size_t features);

  double Predict(const float* row) const;
  // Adds the predictions for consecutive rows, `stride` values apart, to `out`. For a few rows it
  // is no faster than Predict; if neighbouring rows differ in few features it is much faster,
  // because each tree is walked once for all rows. REQUIRES: every feature is monotone from the
  // first row to the last.
  void PredictMonotone(const float* rows, size_t count, size_t stride, double* out) const;

  // Serialisation in little-endian bytes, and back; `features` as above.
  std::string Bytes() const;
  static Result<Forest> FromBytes(std::string_view bytes, size_t features);

 private:
  struct Columns;
  void Walk(const Columns& columns, size_t first, size_t last, int32_t node, double* steps) const;

  std::vector<Node> nodes_;
  std::vector<int32_t> roots_;
};

}  // namespace diapason::model
