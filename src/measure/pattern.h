#pragma once

#include <cstddef>
#include <cstdint>

#include "diapason/comm.h"

namespace diapason::measure {

// Numbers to send and what must come of them. They are small whole numbers, so that combining the
// ranks' is exact in every type and in any order, and each depends on rank and place, so that data
// that went astray shows.

// Fills `count` elements at `buffer` with what `rank` of `ranks` gives, beginning with its element
// `first`.
void FillInput(void* buffer, size_t count, size_t first, DataType type, ReduceOp reduce, int rank,
               int ranks);

// How many of `count` elements are not what combining all ranks' elements from `first` on gives.
int64_t CountWrongReduced(const void* buffer, size_t count, size_t first, DataType type,
                          ReduceOp reduce, int ranks);

// How many are not what `rank` gave.
int64_t CountWrongCopied(const void* buffer, size_t count, size_t first, DataType type,
                         ReduceOp reduce, int rank, int ranks);

}  // namespace diapason::measure
