#pragma once

#include <vector>

#include "model/grid.h"
#include "model/local_model.h"
#include "model/predictor.h"

namespace diapason::model {

// The steps from measurements to a complete table; fit.cc combines them.

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

// A measurement and an estimate by its neighbours, weighted by their precision.
SceneTable::Value Weigh(const Estimate& measured, const Estimate& neighbours);

}  // namespace diapason::model
