#pragma once

#include <cstddef>
#include <vector>

#include "model/local_model.h"

namespace diapason::model {

// Two predictions of times that were hidden from both: by the neighbours of a cell (local_model.h)
// and by the trees. How far each was off says how much either counts, and how far their combination
// can be off. Doubts are such that 90 % of the deviations are within 1.645 of them, whatever their
// distribution.

struct HiddenCell {
  double neighbours = 0;  // predicted less measured, logarithms
  double doubt = 0;       // what the neighbours' model says of its own error
  double trees = 0;       // predicted less measured
};

class HeldOut {
 public:
  // What holds before anything was hidden: the neighbours' doubts as they are, and this error of
  // the trees.
  explicit HeldOut(double tree_error = 0.5) : tree_error_(tree_error) {}
  // `groups`: how many independent parts the cells were hidden in. Few of them count little beside
  // what holds before.
  HeldOut(const std::vector<HiddenCell>& cells, size_t groups, double tree_error);

  // The combination, weighted by both errors. `unseen` multiplies the trees' error: for what is
  // less like the rest than the hidden cells were.
  Estimate Combine(const Estimate& neighbours, double trees, double unseen = 1) const;

  double tree_error() const { return tree_error_; }
  double factor() const { return factor_; }  // of the neighbours' doubts

 private:
  Estimate Mix(double a, double a_doubt, double b, double b_doubt) const;

  double factor_ = 1;
  double tree_error_ = 0.5;
  double alike_ = 0.5;  // the correlation of the two errors
  double whole_ = 1;    // of the combination's doubt
};

// The value that 90 % of the magnitudes do not exceed, as a standard deviation; 0 for none.
double NinetyPercentDeviation(std::vector<double> values);

}  // namespace diapason::model
