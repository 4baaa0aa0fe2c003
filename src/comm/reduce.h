#pragma once

#include <cstddef>

#include "diapason/comm.h"

namespace diapason::comm {

// Element-wise loops, for types that a backend's library lacks and for pre- and postprocessing.
// Integers wrap; f16 and bf16 are computed in f32 and rounded to nearest even after every step, as
// the libraries do.

// into[i] = into[i] op from[i]. kAvg adds; Finish divides.
void Accumulate(DataType type, ReduceOp reduce, void* into, const void* from, size_t count);
// out[i] = a[i] op b[i]; out may be a.
void Combine(DataType type, ReduceOp reduce, void* out, const void* a, const void* b, size_t count);
// The last step after every rank's contribution is combined: divides by `ranks` for kAvg (integers
// are truncated), otherwise nothing.
void Finish(DataType type, ReduceOp reduce, void* data, size_t count, int ranks);

// f32 to f16 or bf16 and back.
void Narrow(DataType to, void* out, const float* in, size_t count);
void Widen(DataType from, float* out, const void* in, size_t count);

}  // namespace diapason::comm
