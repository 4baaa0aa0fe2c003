#pragma once

#include <vector>

#include "model/grid.h"
#include "model/local_model.h"
#include "model/predictor.h"

namespace diapason::model {

// The steps between measurements and a table without gaps; fit.cc puts them together.

// Configurations this much slower (log) than the best of their size are nobody's choice: how far
// off their times are does not matter.
inline constexpr double kCompetitive = 0.3;

// What times of one context are compared with: the library's own choice, or what is usual there.
double Reference(const MeasuredSize& context);

// How far off a straight line between its neighbours in size a time against the default is, in the
// middle of two doublings: root mean square over what competes, less what is mere noise.
double Bend(const MeasuredPlace& scene);

struct ChannelRange {
  int lowest = 0;  // that were measured; 0: none
  int highest = 0;
  int top = 1;
};
// What neighbours say at one size about channels 1 to `width`. They are asked at some of them, and
// all that were measured at the ends; between those times are smooth.
std::vector<Estimate> AskNeighbours(const FamilyModel& model, double log_bytes,
                                    const ChannelRange& range, size_t width);

// What was measured at this very size corrects what neighbours at all sizes say: by its deviation,
// on a line from one measured member to the next, and less and less beyond the last.
void Correct(const MeasuredSize& context, const ConfigFamily& family,
             std::vector<Estimate>* neighbours);

// Two estimates of one time, by how well each is known.
SceneTable::Value Weigh(const Estimate& a, const Estimate& b, bool measured);

}  // namespace diapason::model
