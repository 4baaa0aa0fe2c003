#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <utility>
#include <vector>

namespace diapason::learn {

// The noise of the logarithm of one call's time: pooled over all observations, with a prior that a
// few observations outweigh.
class CallNoise {
 public:
  // Adds the square of a difference with variance sigma^2 / weight. Outliers are capped at a few
  // sigma.
  void Add(double square, double weight);
  double sigma() const;
  // Degrees of freedom.
  double freedom() const { return count_; }

 private:
  double count_ = 6;
  double sum_ = 6 * 0.05 * 0.05;
};

// The evidence from blocks of calls: logarithms of the ratio of an arm's time to that of another
// arm that ran beside it. Arm 0 is the reference of all, directly or through other arms; solved by
// least squares.
class Comparisons {
 public:
  // `arm` took exp(log_ratio) times as long as `other`; the variance is sigma^2 / weight.
  void Add(size_t arm, size_t other, double log_ratio, double weight);
  void Clear();
  // Must be called after changes and before queries.
  void Solve(size_t arms, const CallNoise& noise);

  // Of an arm against another; the error is infinite if no comparisons connect them.
  double Mean(size_t arm, size_t other = 0) const;
  double Error(size_t arm, size_t other = 0) const;
  // The number of its blocks, and their weight.
  size_t Blocks(size_t arm) const { return arm < blocks_.size() ? blocks_[arm] : 0; }
  double Weight(size_t arm) const { return arm < weight_.size() ? weight_[arm] : 0; }

 private:
  struct Block {
    double log_ratio = 0;
    double weight = 0;
  };
  std::map<std::pair<size_t, size_t>, std::deque<Block>> pairs_;  // the newest of each
  std::vector<double> mean_;
  std::vector<double> weight_;
  std::vector<size_t> blocks_;
  std::vector<std::vector<double>> variance_;
};

}  // namespace diapason::learn
