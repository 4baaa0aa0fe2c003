// What elements are worth, computed here and nowhere shared with the code under test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "diapason/comm.h"

namespace diapason::conformance {

// Holds every i64 and every f64 exactly.
using Value = long double;

Value Decode(DataType type, const void* element);
// Rounds to nearest, ties to even; too large becomes infinite.
void Encode(DataType type, Value value, void* element);
Value RoundTo(DataType type, Value value);

// The rounding error of one operation in that type, relative to its result; 0 for integers.
Value Roundoff(DataType type);
bool IsFloat(DataType type);

uint64_t Hash(uint64_t seed, uint64_t a, uint64_t b);

// What rank `rank` of `size` puts at `index`. Chosen so that combining all ranks is exact in any
// order, and so that a detour through a narrower or differently signed type shows.
Value Input(DataType type, ReduceOp reduce, uint64_t seed, int rank, int size, size_t index);
// Not representable in f16 or bf16, so that a wire type must round; products stay small.
Value WireInput(ReduceOp reduce, uint64_t seed, int rank, int size, size_t index);

// All ranks' values combined, exact.
Value Combine(ReduceOp reduce, const std::vector<Value>& values);

inline constexpr DataType kTypes[] = {DataType::kF32,  DataType::kF64, DataType::kF16,
                                      DataType::kBf16, DataType::kI8,  DataType::kU8,
                                      DataType::kI32,  DataType::kI64};
inline constexpr ReduceOp kReduces[] = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin,
                                        ReduceOp::kMax, ReduceOp::kAvg};

}  // namespace diapason::conformance
