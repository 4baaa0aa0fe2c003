#pragma once

namespace diapason {

// The standard normal distribution, and Student's.

double NormalDensity(double x);
// The probability of a value up to x.
double NormalCdf(double x);
// The inverse of NormalCdf, exact to rounding; within 10 for probabilities of 0 and 1.
double NormalQuantile(double probability);

// The value that is exceeded with the probability `tail`, 0 < tail < 0.5, to within 0.0005
// (Abramowitz and Stegun 26.2.23): a logarithm and a root, for the learner and for figures that
// are rounded anyway.
double NormalTailQuantile(double tail);
// The quantile of Student's t distribution; `share` in (0.5, 1). From NormalTailQuantile and the
// first terms of Cornish and Fisher.
double StudentQuantile(double share, double freedom);
// The same for 0.975, the end of an interval of 95 %, which is also right for one to four degrees
// of freedom, where the terms above are too small.
double StudentQuantile975(double freedom);

// The probability of a value above t under Student's t distribution: exact to rounding, for any
// number of degrees of freedom above 0.
double StudentTail(double t, double freedom);
// The value that is exceeded with the probability `tail`, 0 < tail < 0.5: the inverse of
// StudentTail, by bisection; at most 1e9.
double StudentTailQuantile(double tail, double freedom);

}  // namespace diapason
