#include "measure/pattern.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "comm/reduce.h"

namespace diapason::measure {
namespace {

// Elements are worked on in blocks of this many.
constexpr size_t kBlock = 4096;

// The numbers of up to 25 ranks add up to at most 100, which every type holds exactly; beyond that
// zeros and ones have to do.
int Kinds(int ranks) { return ranks <= 25 ? 5 : 2; }

int64_t Value(size_t index, ReduceOp reduce, int rank, int ranks) {
  const uint64_t bits = MixBits(index);
  if (reduce == ReduceOp::kProd) {
    return bits % static_cast<uint64_t>(ranks) == static_cast<uint64_t>(rank) ? 2 : 1;
  }
  const auto kinds = static_cast<uint64_t>(Kinds(ranks));
  return static_cast<int64_t>((bits % kinds + static_cast<uint64_t>(rank)) % kinds);
}

// All ranks' values at one index depend on its residue alone: a few sums serve all elements.
struct Expected {
  std::vector<int64_t> by_residue;
  int64_t At(size_t index) const { return by_residue[MixBits(index) % by_residue.size()]; }
};

Expected Combine(ReduceOp reduce, int ranks) {
  Expected expected;
  if (reduce == ReduceOp::kProd) {
    expected.by_residue = {2};
    return expected;
  }
  const int kinds = Kinds(ranks);
  for (int residue = 0; residue < kinds; ++residue) {
    int64_t result = reduce == ReduceOp::kMin ? kinds : 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const int64_t value = (residue + rank) % kinds;
      if (reduce == ReduceOp::kMin) {
        result = std::min(result, value);
      } else if (reduce == ReduceOp::kMax) {
        result = std::max(result, value);
      } else {
        result += value;
      }
    }
    expected.by_residue.push_back(result);
  }
  return expected;
}

// Whole numbers up to this are exact in the type.
double ExactUpTo(DataType type) {
  switch (type) {
    case DataType::kF16:
      return 2048;
    case DataType::kBf16:
      return 256;
    case DataType::kF32:
      return 16777216;
    default:
      return 9007199254740992.0;
  }
}

template <typename T>
int64_t CountWrongWhole(const void* buffer, size_t count, size_t first, ReduceOp reduce,
                        const Expected& expected, int ranks) {
  const T* values = static_cast<const T*>(buffer);
  int64_t wrong = 0;
  for (size_t i = 0; i < count; ++i) {
    int64_t wanted = expected.At(first + i);
    if (reduce == ReduceOp::kAvg) wanted /= ranks;
    if (values[i] != static_cast<T>(wanted)) ++wrong;
  }
  return wrong;
}

template <typename T>
int64_t CountWrongFloat(const T* values, size_t count, size_t first, DataType type, ReduceOp reduce,
                        const Expected& expected, int ranks) {
  int64_t wrong = 0;
  // Where a step of the sum is rounded, every rank may add the rounding error of one.
  const double roundoff = 2.0 * ranks / ExactUpTo(type);
  for (size_t i = 0; i < count; ++i) {
    auto wanted = static_cast<double>(expected.At(first + i));
    const bool exact = reduce != ReduceOp::kAvg && wanted <= ExactUpTo(type);
    if (reduce == ReduceOp::kAvg) wanted /= ranks;
    const double error = std::abs(static_cast<double>(values[i]) - wanted);
    if (!(error <= (exact ? 0 : roundoff * std::max(1.0, wanted)))) ++wrong;  // NaN is wrong too
  }
  return wrong;
}

int64_t CountWrong(const void* buffer, size_t count, size_t first, DataType type, ReduceOp reduce,
                   const Expected& expected, int ranks) {
  switch (type) {
    case DataType::kF32:
      return CountWrongFloat(static_cast<const float*>(buffer), count, first, type, reduce,
                             expected, ranks);
    case DataType::kF64:
      return CountWrongFloat(static_cast<const double*>(buffer), count, first, type, reduce,
                             expected, ranks);
    case DataType::kF16:
    case DataType::kBf16: {
      std::vector<float> wide(kBlock);
      int64_t wrong = 0;
      for (size_t at = 0; at < count; at += kBlock) {
        const size_t some = std::min(kBlock, count - at);
        comm::Widen(type, wide.data(), static_cast<const char*>(buffer) + at * 2, some);
        wrong += CountWrongFloat(wide.data(), some, first + at, type, reduce, expected, ranks);
      }
      return wrong;
    }
    case DataType::kI8:
      return CountWrongWhole<int8_t>(buffer, count, first, reduce, expected, ranks);
    case DataType::kU8:
      return CountWrongWhole<uint8_t>(buffer, count, first, reduce, expected, ranks);
    case DataType::kI32:
      return CountWrongWhole<int32_t>(buffer, count, first, reduce, expected, ranks);
    case DataType::kI64:
      return CountWrongWhole<int64_t>(buffer, count, first, reduce, expected, ranks);
  }
  return static_cast<int64_t>(count);
}

template <typename T>
void Fill(T* out, size_t count, size_t first, ReduceOp reduce, int rank, int ranks) {
  for (size_t i = 0; i < count; ++i) {
    out[i] = static_cast<T>(Value(first + i, reduce, rank, ranks));
  }
}

}  // namespace

void FillInput(void* buffer, size_t count, size_t first, DataType type, ReduceOp reduce, int rank,
               int ranks) {
  switch (type) {
    case DataType::kF32:
      return Fill(static_cast<float*>(buffer), count, first, reduce, rank, ranks);
    case DataType::kF64:
      return Fill(static_cast<double*>(buffer), count, first, reduce, rank, ranks);
    case DataType::kI8:
      return Fill(static_cast<int8_t*>(buffer), count, first, reduce, rank, ranks);
    case DataType::kU8:
      return Fill(static_cast<uint8_t*>(buffer), count, first, reduce, rank, ranks);
    case DataType::kI32:
      return Fill(static_cast<int32_t*>(buffer), count, first, reduce, rank, ranks);
    case DataType::kI64:
      return Fill(static_cast<int64_t*>(buffer), count, first, reduce, rank, ranks);
    case DataType::kF16:
    case DataType::kBf16: {
      std::vector<float> wide(kBlock);
      for (size_t at = 0; at < count; at += kBlock) {
        const size_t some = std::min(kBlock, count - at);
        Fill(wide.data(), some, first + at, reduce, rank, ranks);
        comm::Narrow(type, static_cast<char*>(buffer) + at * 2, wide.data(), some);
      }
    }
  }
}

int64_t CountWrongReduced(const void* buffer, size_t count, size_t first, DataType type,
                          ReduceOp reduce, int ranks) {
  return CountWrong(buffer, count, first, type, reduce, Combine(reduce, ranks), ranks);
}

int64_t CountWrongCopied(const void* buffer, size_t count, size_t first, DataType type,
                         ReduceOp reduce, int rank, int ranks) {
  // What came is what was filled in: byte for byte.
  const size_t size = SizeOf(type);
  std::vector<char> wanted(kBlock * size);
  int64_t wrong = 0;
  for (size_t at = 0; at < count; at += kBlock) {
    const size_t some = std::min(kBlock, count - at);
    FillInput(wanted.data(), some, first + at, type, reduce, rank, ranks);
    const char* got = static_cast<const char*>(buffer) + at * size;
    for (size_t i = 0; i < some; ++i) {
      if (!std::equal(got + i * size, got + (i + 1) * size, wanted.data() + i * size)) ++wrong;
    }
  }
  return wrong;
}

}  // namespace diapason::measure
