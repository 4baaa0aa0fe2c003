#include "numbers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace diapason::conformance {
namespace {

template <typename T>
Value Load(const void* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return static_cast<Value>(value);
}

template <typename T>
void Store(Value value, void* element) {
  const T narrow = static_cast<T>(value);
  std::memcpy(element, &narrow, sizeof narrow);
}

// A 16-bit float with so many bits of exponent and fraction.
struct Half {
  int exponent_bits;
  int fraction_bits;
};
constexpr Half kHalf{5, 10};
constexpr Half kBrain{8, 7};

Value DecodeHalf(const Half& half, uint16_t bits) {
  const int bias = (1 << (half.exponent_bits - 1)) - 1;
  const int exponent = (bits >> half.fraction_bits) & ((1 << half.exponent_bits) - 1);
  const int fraction = bits & ((1 << half.fraction_bits) - 1);
  Value value;
  if (exponent == (1 << half.exponent_bits) - 1) {
    value = fraction == 0 ? std::numeric_limits<Value>::infinity()
                          : std::numeric_limits<Value>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<Value>(fraction), 1 - bias - half.fraction_bits);
  } else {
    value = std::ldexp(static_cast<Value>(fraction + (1 << half.fraction_bits)),
                       exponent - bias - half.fraction_bits);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

uint16_t EncodeHalf(const Half& half, Value value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const int bias = (1 << (half.exponent_bits - 1)) - 1;
  const uint16_t infinity =
      static_cast<uint16_t>(((1 << half.exponent_bits) - 1) << half.fraction_bits);
  if (std::isnan(value)) return sign | infinity | (1U << (half.fraction_bits - 1));
  value = std::fabs(value);
  if (std::isinf(value)) return sign | infinity;
  if (value == 0) return sign;
  int exponent = 0;
  std::frexp(value, &exponent);
  // The exponent of the last place that is kept.
  const int last = std::max(exponent - 1, 1 - bias) - half.fraction_bits;
  const Value places = std::nearbyint(std::ldexp(value, -last));
  // A carry into the exponent is what the encoding wants, up to infinity.
  const int64_t bits =
      static_cast<int64_t>(places) +
      (static_cast<int64_t>(last + bias + half.fraction_bits - 1) << half.fraction_bits);
  return sign | static_cast<uint16_t>(std::min<int64_t>(bits, infinity));
}

// The largest whole number up to which the type holds every one.
Value ExactLimit(DataType type) {
  switch (type) {
    case DataType::kF32:
      return 16777216.0L;
    case DataType::kF64:
      return 9007199254740992.0L;
    case DataType::kF16:
      return 2048;
    case DataType::kBf16:
      return 256;
    case DataType::kI8:
      return 127;
    case DataType::kU8:
      return 255;
    case DataType::kI32:
      return 2147483647.0L;
    case DataType::kI64:
      return 9223372036854775807.0L;
  }
  return 1;
}

}  // namespace

Value Decode(DataType type, const void* element) {
  uint16_t bits = 0;
  switch (type) {
    case DataType::kF32:
      return Load<float>(element);
    case DataType::kF64:
      return Load<double>(element);
    case DataType::kF16:
      std::memcpy(&bits, element, sizeof bits);
      return DecodeHalf(kHalf, bits);
    case DataType::kBf16:
      std::memcpy(&bits, element, sizeof bits);
      return DecodeHalf(kBrain, bits);
    case DataType::kI8:
      return Load<int8_t>(element);
    case DataType::kU8:
      return Load<uint8_t>(element);
    case DataType::kI32:
      return Load<int32_t>(element);
    case DataType::kI64:
      return Load<int64_t>(element);
  }
  return 0;
}

void Encode(DataType type, Value value, void* element) {
  uint16_t bits = 0;
  switch (type) {
    case DataType::kF32:
      return Store<float>(value, element);
    case DataType::kF64:
      return Store<double>(value, element);
    case DataType::kF16:
      bits = EncodeHalf(kHalf, value);
      std::memcpy(element, &bits, sizeof bits);
      return;
    case DataType::kBf16:
      bits = EncodeHalf(kBrain, value);
      std::memcpy(element, &bits, sizeof bits);
      return;
    case DataType::kI8:
      return Store<int8_t>(value, element);
    case DataType::kU8:
      return Store<uint8_t>(value, element);
    case DataType::kI32:
      return Store<int32_t>(value, element);
    case DataType::kI64:
      return Store<int64_t>(value, element);
  }
}

Value RoundTo(DataType type, Value value) {
  unsigned char element[8];
  Encode(type, value, element);
  return Decode(type, element);
}

Value Roundoff(DataType type) {
  switch (type) {
    case DataType::kF32:
      return std::ldexp(1.0L, -24);
    case DataType::kF64:
      return std::ldexp(1.0L, -53);
    case DataType::kF16:
      return std::ldexp(1.0L, -11);
    case DataType::kBf16:
      return std::ldexp(1.0L, -8);
    default:
      return 0;
  }
}

bool IsFloat(DataType type) { return Roundoff(type) > 0; }

uint64_t Hash(uint64_t seed, uint64_t a, uint64_t b) {
  uint64_t x = seed * 0x9e3779b97f4a7c15U + a * 0xd1b54a32d192ed03U + b * 0x8cb92ba72f3d8dd7U;
  for (const int shift : {30, 27, 31}) {
    x ^= x >> shift;
    x *= 0xbf58476d1ce4e5b9U;
  }
  return x ^ (x >> 32);
}

Value Input(DataType type, ReduceOp reduce, uint64_t seed, int rank, int size, size_t index) {
  const uint64_t hash = Hash(seed, static_cast<uint64_t>(rank), index);
  const bool is_signed = type != DataType::kU8;
  if (reduce == ReduceOp::kProd) {
    // At most six factors of two: 64 fits everywhere.
    const bool two = (static_cast<size_t>(rank) + index) % static_cast<size_t>(size) < 6;
    const Value value = two ? static_cast<Value>(1 + hash % 2) : 1;
    return is_signed && (hash & 2) != 0 ? -value : value;
  }
  const bool sums = reduce == ReduceOp::kSum || reduce == ReduceOp::kAvg;
  const Value range = std::max<Value>(1, std::floor(ExactLimit(type) / (sums ? size : 1)));
  const uint64_t span = static_cast<uint64_t>(range);
  if (!is_signed) return static_cast<Value>(hash % (span + 1));
  const Value magnitude = static_cast<Value>((hash >> 1) % (span + 1 == 0 ? span : span + 1));
  return (hash & 1) != 0 ? -magnitude : magnitude;
}

Value WireInput(ReduceOp reduce, uint64_t seed, int rank, int size, size_t index) {
  const uint64_t hash = Hash(seed, static_cast<uint64_t>(rank), index);
  const Value fraction = static_cast<Value>((hash >> 8) % 262144 * 2 + 1) / 524288;
  const Value value = 1 + (reduce == ReduceOp::kProd ? fraction / size : fraction);
  return (hash & 1) != 0 ? -value : value;
}

Value Combine(ReduceOp reduce, const std::vector<Value>& values) {
  Value result = values[0];
  for (size_t i = 1; i < values.size(); ++i) {
    switch (reduce) {
      case ReduceOp::kSum:
      case ReduceOp::kAvg:
        result += values[i];
        break;
      case ReduceOp::kProd:
        result *= values[i];
        break;
      case ReduceOp::kMin:
        result = std::min(result, values[i]);
        break;
      case ReduceOp::kMax:
        result = std::max(result, values[i]);
        break;
    }
  }
  return reduce == ReduceOp::kAvg ? result / static_cast<Value>(values.size()) : result;
}

}  // namespace diapason::conformance
