#pragma once

#include <vector>

#include "model/grid.h"
#include "model/local_model.h"
#include "model/predictor.h"

namespace diapason::model {

// The steps from measurements to a complete table; fit.cc combines them.

// Configurations this much slower (log) than the best of their size are never chosen: the error of
// their times does not matter.
inline constexpr double kCompetitive = 0.3;

// The reference for the times of one context: the library's own choice, or the typical time there.
double Reference(const MeasuredSize& context);

struct ChannelRange {
  int lowest = 0;  // that were measured; 0: none
  int highest = 0;
  int top = 1;
};
// The neighbours' estimates at one size for channels 1 to `width`. They are computed at some
// channel counts and all measured ones at the ends; times are smooth in between.
std::vector<Estimate> AskNeighbours(const FamilyModel& model, double log_bytes,
                                    const ChannelRange& range, size_t width);

// Corrects the estimates by the measurements at this size: by their deviation, interpolated
// linearly between measured channel counts, and fading beyond the last.
void Correct(const MeasuredSize& context, const ConfigFamily& family,
             std::vector<Estimate>* neighbours);

// Combines two estimates of one time, weighted by their precision. A measurement errs independently
// of an estimate; two estimates are of the same measurements, and err alike.
SceneTable::Value Weigh(const Estimate& a, const Estimate& b, bool measured);

}  // namespace diapason::model
