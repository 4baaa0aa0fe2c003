#include "comm/reduce.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace diapason::comm {
namespace {

// Two-byte floats are processed in blocks of this many, which stay in the L1 cache.
constexpr size_t kBlock = 1024;

uint16_t NarrowToBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  // A NaN must stay a NaN: rounding could carry it into infinity.
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>((bits >> 16U) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

float WidenBf16(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16U);
}

uint16_t NarrowToF16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16U) & 0x8000U);
  const uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return sign | 0x7e00U;   // NaN
  if (magnitude >= 0x477ff000U) return sign | 0x7c00U;  // rounds to infinity
  if (magnitude < 0x38800000U) {
    // Subnormal in f16: adding this constant makes the hardware round at the right bit.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(shifted) - 0x3f000000U);
  }
  const uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13U) & 1U);
  return sign | static_cast<uint16_t>((rounded - 0x38000000U) >> 13U);
}

float WidenF16(uint16_t value) {
  const uint32_t sign = static_cast<uint32_t>(value & 0x8000U) << 16U;
  const uint32_t magnitude = value & 0x7fffU;
  if (magnitude >= 0x7c00U) {
    return std::bit_cast<float>(sign | 0x7f800000U | ((magnitude & 0x3ffU) << 13U));
  }
  if (magnitude < 0x400U) {  // zero or subnormal: magnitude units of 2^-24
    const float small = static_cast<float>(magnitude) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(small));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13U) + 0x38000000U));
}

#if defined(__x86_64__)
__attribute__((target("avx,f16c"))) void NarrowF16Fast(uint16_t* out, const float* in,
                                                       size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), half);
  }
  for (; i < count; ++i) out[i] = NarrowToF16(in[i]);
}
__attribute__((target("avx,f16c"))) void WidenF16Fast(float* out, const uint16_t* in,
                                                      size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i));
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(half));
  }
  for (; i < count; ++i) out[i] = WidenF16(in[i]);
}
bool HasF16c() {
  static const bool has = [] {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) != 0 &&
           (c & bit_F16C) != 0;
  }();
  return has;
}
#else
void NarrowF16Fast(uint16_t*, const float*, size_t) {}
void WidenF16Fast(float*, const uint16_t*, size_t) {}
bool HasF16c() { return false; }
#endif

// Signed sums and products wrap, as in every library; in C++ only unsigned ones do.
template <typename T, typename = void>
struct Wrapping {
  using Type = T;
};
template <typename T>
struct Wrapping<T, std::enable_if_t<std::is_integral_v<T>>> {
  using Type = std::make_unsigned_t<std::conditional_t<sizeof(T) < 4, uint32_t, T>>;
};

template <typename T>
void CombineAs(ReduceOp reduce, T* out, const T* a, const T* b, size_t count) {
  using W = typename Wrapping<T>::Type;
  switch (reduce) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      for (size_t i = 0; i < count; ++i) {
        out[i] = static_cast<T>(static_cast<W>(a[i]) + static_cast<W>(b[i]));
      }
      return;
    case ReduceOp::kProd:
      for (size_t i = 0; i < count; ++i) {
        out[i] = static_cast<T>(static_cast<W>(a[i]) * static_cast<W>(b[i]));
      }
      return;
    case ReduceOp::kMin:
      for (size_t i = 0; i < count; ++i) out[i] = b[i] < a[i] ? b[i] : a[i];
      return;
    case ReduceOp::kMax:
      for (size_t i = 0; i < count; ++i) out[i] = a[i] < b[i] ? b[i] : a[i];
      return;
  }
}

void CombineHalves(DataType type, ReduceOp reduce, uint16_t* out, const uint16_t* a,
                   const uint16_t* b, size_t count) {
  float left[kBlock];
  float right[kBlock];
  for (size_t done = 0; done < count; done += kBlock) {
    const size_t part = std::min(kBlock, count - done);
    Widen(type, left, a + done, part);
    Widen(type, right, b + done, part);
    CombineAs(reduce, left, left, right, part);
    Narrow(type, out + done, left, part);
  }
}

template <typename T>
void Divide(T* data, size_t count, int ranks) {
  // Types as small as i8 cannot hold every number of ranks.
  using Wide = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
  for (size_t i = 0; i < count; ++i) {
    data[i] = static_cast<T>(static_cast<Wide>(data[i]) / static_cast<Wide>(ranks));
  }
}

}  // namespace

void Narrow(DataType to, void* out, const float* in, size_t count) {
  auto* halves = static_cast<uint16_t*>(out);
  if (to == DataType::kBf16) {
    for (size_t i = 0; i < count; ++i) halves[i] = NarrowToBf16(in[i]);
  } else if (HasF16c()) {
    NarrowF16Fast(halves, in, count);
  } else {
    for (size_t i = 0; i < count; ++i) halves[i] = NarrowToF16(in[i]);
  }
}

void Widen(DataType from, float* out, const void* in, size_t count) {
  const auto* halves = static_cast<const uint16_t*>(in);
  if (from == DataType::kBf16) {
    for (size_t i = 0; i < count; ++i) out[i] = WidenBf16(halves[i]);
  } else if (HasF16c()) {
    WidenF16Fast(out, halves, count);
  } else {
    for (size_t i = 0; i < count; ++i) out[i] = WidenF16(halves[i]);
  }
}

void Combine(DataType type, ReduceOp reduce, void* out, const void* a, const void* b,
             size_t count) {
  const auto as = [&]<typename T>(T /*kind*/) {
    CombineAs(reduce, static_cast<T*>(out), static_cast<const T*>(a), static_cast<const T*>(b),
              count);
  };
  switch (type) {
    case DataType::kF32:
      return as(float{});
    case DataType::kF64:
      return as(double{});
    case DataType::kF16:
    case DataType::kBf16:
      return CombineHalves(type, reduce, static_cast<uint16_t*>(out),
                           static_cast<const uint16_t*>(a), static_cast<const uint16_t*>(b), count);
    case DataType::kI8:
      return as(int8_t{});
    case DataType::kU8:
      return as(uint8_t{});
    case DataType::kI32:
      return as(int32_t{});
    case DataType::kI64:
      return as(int64_t{});
  }
}

void Accumulate(DataType type, ReduceOp reduce, void* into, const void* from, size_t count) {
  Combine(type, reduce, into, into, from, count);
}

void Finish(DataType type, ReduceOp reduce, void* data, size_t count, int ranks) {
  if (reduce != ReduceOp::kAvg || ranks == 1) return;
  switch (type) {
    case DataType::kF32:
      return Divide(static_cast<float*>(data), count, ranks);
    case DataType::kF64:
      return Divide(static_cast<double*>(data), count, ranks);
    case DataType::kF16:
    case DataType::kBf16: {
      float block[kBlock];
      auto* halves = static_cast<uint16_t*>(data);
      for (size_t done = 0; done < count; done += kBlock) {
        const size_t part = std::min(kBlock, count - done);
        Widen(type, block, halves + done, part);
        Divide(block, part, ranks);
        Narrow(type, halves + done, block, part);
      }
      return;
    }
    case DataType::kI8:
      return Divide(static_cast<int8_t*>(data), count, ranks);
    case DataType::kU8:
      return Divide(static_cast<uint8_t*>(data), count, ranks);
    case DataType::kI32:
      return Divide(static_cast<int32_t*>(data), count, ranks);
    case DataType::kI64:
      return Divide(static_cast<int64_t*>(data), count, ranks);
  }
}

}  // namespace diapason::comm
