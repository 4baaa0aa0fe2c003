#pragma once

#include <optional>

#include "model/grid.h"
#include "model/local_model.h"

namespace diapason::model {

// Between measured sizes a gain (the time of the library's own choice relative to a
// configuration's, as a logarithm) is interpolated linearly over the logarithm of the size. How far
// it can be off there is measured: each inner size is hidden and interpolated from its neighbours.
//
// Gains of real libraries deviate like a random walk over doublings, because both sides switch
// algorithms at sizes of their own: the variance at a point is unit^2 * doublings * w * (1 - w)
// between two sizes, and unit^2 * doublings beyond the last. Measured on the data at hand, at the
// distances of its sizes and at twice these, this holds better than a smooth curve, whose error
// would vanish quickly where sizes are close.

// The standard deviation of a doubling, from the configurations of this place that come close to
// the best. With few sizes it starts from what is usual on other machines.
double GapUnit(const MeasuredPlace& scene);
// The same for the times of all configurations, at the distances of the measured sizes.
double TimeGapUnit(const MeasuredPlace& scene);

// The deviations of a doubling beyond the smallest ([0]) and the largest size ([1]), from the last
// steps before it: of gains that stay, of times that stay (below) or grow with the size (above).
struct EndUnits {
  double gain[2] = {0, 0};
  double time[2] = {0, 0};
};
EndUnits EndUnitsOf(const MeasuredPlace& scene);

// The standard deviation of the interpolation at weight `w` between sizes this many doublings
// apart.
double GapError(double unit, double weight, double doublings);
// The same this many doublings beyond the last measured size.
double BeyondError(double unit, double doublings);

// The place with each gain as all sizes together tell it: a random walk of this unit, seen through
// the noise of its cells (Kalman's filter and smoother). Times of configurations and the noise of
// all change, the time of the library's own choice does not. Where the noise is small beside the
// unit this is the measurement; where it is not, neighbours say more than the two samples of a
// cell.
MeasuredPlace Smoothed(const MeasuredPlace& scene, double unit);
// Whether it is worth it: the noise of most gains is comparable with how much they change from one
// size to the next. Elsewhere the order of configurations at a size is known better than their
// gains over a disturbed sample of the library's own choice, and smoothing would lose it.
bool NoiseHidesSteps(const MeasuredPlace& scene, double unit);

// Where a size lies between two others.
struct Surrounding {
  const MeasuredSize* below = nullptr;
  const MeasuredSize* above = nullptr;  // the same if it was measured
  double weight = 0;
  double doublings = 0;  // between the two
  // The factor between the size and the nearer of the two.
  double Reach(uint64_t bytes) const;
};
// The nearest sizes at which this configuration was measured together with the library's own
// choice, or any size for the default; nullopt outside.
std::optional<Surrounding> Surround(const MeasuredPlace& scene, uint64_t bytes,
                                    const Config& config);

}  // namespace diapason::model
