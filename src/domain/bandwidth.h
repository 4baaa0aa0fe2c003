#pragma once

#include "domain/vocabulary.h"

namespace diapason {

// Bandwidth as nccl-tests counts it. algbw is bytes over time; busbw is algbw times this factor:
// the share of the bytes that one link has to carry in the best algorithm, so that busbw can be
// compared with the link whatever the collective and the number of ranks.
double BusFactor(Collective collective, int ranks);

}  // namespace diapason
