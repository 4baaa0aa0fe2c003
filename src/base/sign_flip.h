#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace diapason {

// A randomisation test of "the setting changes nothing" on blocks whose order was drawn by lot.
//
// A block holds runs with and without the setting; its result is the log gain, how much longer the
// runs without took. Were the setting to change nothing, the same runs at the same moments would
// have taken the same time under the other order, and the result would have had the other sign:
// each sign is a fair coin, whatever the noise, drift or memory of the machine. So the chance of a
// sum of results at least as large as the one seen is counted over all sign vectors, exactly; no
// distribution is assumed. Results count at most 1.5 times the median of their magnitudes: one
// disturbed run does not decide.
//
// The test looks after every block and stays exact. At `most` blocks it has spent `alpha`, after k
// of them alpha * k / most: of the sign vectors that no earlier look rejected, a look rejects those
// with the largest sums, as many as its share pays for. That bounds the chance that a setting that
// changes nothing is ever rejected by alpha, and stopping early for want of success only lowers it.
class SignFlipTest {
 public:
  static constexpr int kMostBlocks = 20;  // a million sign vectors

  // REQUIRES: 0 < alpha < 1, 1 <= most <= kMostBlocks.
  SignFlipTest(double alpha, int most);

  // The next block. True when the test rejects now: there is a gain. Not to be called after that,
  // nor more than `most` times.
  bool Add(double log_gain);

  int blocks() const { return static_cast<int>(gains_.size()); }
  double alpha() const { return alpha_; }
  // The chance of a sum this large or larger, were there only this one look; 1 before any block.
  double p() const { return p_; }
  const std::vector<double>& gains() const { return gains_; }

  // The least number of blocks after which a test of this kind can reject.
  static int LeastBlocks(double alpha, int most);

 private:
  double alpha_;
  int most_;
  std::vector<double> gains_;
  std::vector<uint8_t> rejected_;  // sign vectors that some look so far rejects
  size_t rejected_count_ = 0;
  double p_ = 1;
};

// The p-value of one look at all of them: the chance of a sum this large or larger under fair
// signs. REQUIRES: 1 to SignFlipTest::kMostBlocks of them.
double SignFlipP(const std::vector<double>& log_gains);

// How large: the median of all averages of two results (Hodges and Lehmann), with an interval of at
// least 95 % where there are six results or more, else all of their range.
struct ShiftEstimate {
  double estimate = 0;
  double low = 0;
  double high = 0;
};
// REQUIRES: not empty.
ShiftEstimate EstimateShift(const std::vector<double>& results);

}  // namespace diapason
