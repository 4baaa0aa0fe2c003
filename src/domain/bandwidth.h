#pragma once

#include "domain/vocabulary.h"

namespace diapason {

// Bus bandwidth factor of nccl-tests. algbw is bytes over time; busbw is algbw times this factor:
// the fraction of the bytes that one link carries in the best algorithm, so that busbw compares
// with the link's peak for every collective and number of ranks.
double BusFactor(Collective collective, int ranks);

}  // namespace diapason
