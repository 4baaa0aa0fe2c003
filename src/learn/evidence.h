#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <utility>
#include <vector>

namespace diapason::learn {

// How much the logarithm of one call's time varies: pooled over everything that was seen, around a
// first guess that a few observations outweigh.
class CallNoise {
 public:
  // The square of a difference that has the variance sigma^2 / weight. A rare hiccup counts as no
  // more than a few sigma.
  void Add(double square, double weight);
  double sigma() const;
  // Degrees of freedom.
  double freedom() const { return count_; }

 private:
  double count_ = 6;
  double sum_ = 6 * 0.05 * 0.05;
};

// What blocks of calls have said about arms: logarithms of the time of one over the time of another
// that ran beside it. Arm 0 is what all are measured by, directly or through others; the rest is
// least squares.
class Comparisons {
 public:
  // `arm` took exp(log_ratio) times as long as `other`; the variance is sigma^2 / weight.
  void Add(size_t arm, size_t other, double log_ratio, double weight);
  void Clear();
  // After every change, and before questions.
  void Solve(size_t arms, const CallNoise& noise);

  // Of an arm against another; the error is infinite where nothing connects them.
  double Mean(size_t arm, size_t other = 0) const;
  double Error(size_t arm, size_t other = 0) const;
  // The blocks that tell about it directly, and their weight.
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

// The quantile of Student's distribution; `share` in (0.5, 1).
double StudentQuantile(double share, double freedom);

}  // namespace diapason::learn
