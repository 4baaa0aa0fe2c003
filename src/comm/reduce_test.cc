#include "comm/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace diapason::comm {
namespace {

float Through(DataType type, float value) {
  // Nine values, so that both the wide and the single form of a conversion run.
  const std::vector<float> in(9, value);
  std::vector<uint16_t> narrow(9);
  std::vector<float> out(9);
  Narrow(type, narrow.data(), in.data(), 9);
  Widen(type, out.data(), narrow.data(), 9);
  for (const float one : out) {
    EXPECT_TRUE(one == out[0] || (std::isnan(one) && std::isnan(out[0])));
  }
  return out[0];
}

TEST(Reduce, ConversionsRoundToNearestEven) {
  EXPECT_EQ(Through(DataType::kBf16, 1.0F), 1.0F);
  EXPECT_EQ(Through(DataType::kBf16, 1.00390625F), 1.0F);       // a tie: down to even
  EXPECT_EQ(Through(DataType::kBf16, 1.01171875F), 1.015625F);  // a tie: up to even
  EXPECT_EQ(Through(DataType::kF16, 1.00048828125F), 1.0F);     // a tie: down to even
  EXPECT_EQ(Through(DataType::kF16, 65504.0F), 65504.0F);       // the largest
  EXPECT_EQ(Through(DataType::kF16, 0x1p-24F), 0x1p-24F);       // the smallest
  EXPECT_EQ(Through(DataType::kF16, 0x1p-26F), 0.0F);
  EXPECT_EQ(Through(DataType::kF16, -2.5F), -2.5F);
}

TEST(Reduce, ConversionsKeepWhatIsNotANumber) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const DataType type : {DataType::kF16, DataType::kBf16}) {
    EXPECT_EQ(Through(type, kInfinity), kInfinity);
    EXPECT_EQ(Through(type, -kInfinity), -kInfinity);
    EXPECT_TRUE(std::isnan(Through(type, std::numeric_limits<float>::quiet_NaN())));
    EXPECT_TRUE(std::signbit(Through(type, -0.0F)));
  }
  EXPECT_EQ(Through(DataType::kF16, 1e6F), kInfinity);
}

TEST(Reduce, EveryF16SurvivesTheWayThroughF32) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  for (const DataType type : {DataType::kF16, DataType::kBf16}) {
    std::vector<float> wide(all.size());
    std::vector<uint16_t> back(all.size());
    Widen(type, wide.data(), all.data(), all.size());
    Narrow(type, back.data(), wide.data(), all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      if (std::isnan(wide[i])) continue;
      ASSERT_EQ(back[i], all[i]) << DataTypeName(type);
    }
  }
}

template <typename T>
T Combined(DataType type, ReduceOp reduce, T a, T b) {
  T out = a;
  Accumulate(type, reduce, &out, &b, 1);
  return out;
}

TEST(Reduce, EveryReductionOfIntegers) {
  EXPECT_EQ(Combined<int32_t>(DataType::kI32, ReduceOp::kSum, 3, -5), -2);
  EXPECT_EQ(Combined<int32_t>(DataType::kI32, ReduceOp::kProd, 3, -5), -15);
  EXPECT_EQ(Combined<int32_t>(DataType::kI32, ReduceOp::kMin, 3, -5), -5);
  EXPECT_EQ(Combined<int32_t>(DataType::kI32, ReduceOp::kMax, 3, -5), 3);
  EXPECT_EQ(Combined<uint8_t>(DataType::kU8, ReduceOp::kMax, 200, 100), 200);
  EXPECT_EQ(Combined<int8_t>(DataType::kI8, ReduceOp::kMax, -56, 100), 100);
}

TEST(Reduce, IntegersWrap) {
  EXPECT_EQ(Combined<int32_t>(DataType::kI32, ReduceOp::kSum, INT32_MAX, 1), INT32_MIN);
  EXPECT_EQ(Combined<int64_t>(DataType::kI64, ReduceOp::kSum, INT64_MAX, 1), INT64_MIN);
  EXPECT_EQ(Combined<int8_t>(DataType::kI8, ReduceOp::kSum, 127, 1), -128);
  EXPECT_EQ(Combined<uint8_t>(DataType::kU8, ReduceOp::kProd, 16, 17), 16);
}

TEST(Reduce, AveragesDivideOnceAtTheEnd) {
  std::vector<float> floats{6, 9, -3};
  Finish(DataType::kF32, ReduceOp::kAvg, floats.data(), 3, 3);
  EXPECT_EQ(floats, (std::vector<float>{2, 3, -1}));
  std::vector<int8_t> small{100, -7};
  Finish(DataType::kI8, ReduceOp::kAvg, small.data(), 2, 300);  // more ranks than an i8 can say
  EXPECT_EQ(small, (std::vector<int8_t>{0, 0}));
  std::vector<int32_t> sums{7};
  Finish(DataType::kI32, ReduceOp::kSum, sums.data(), 1, 2);
  EXPECT_EQ(sums[0], 7);
}

TEST(Reduce, LongHalvesAreDoneInBlocks) {
  const size_t count = 5000;
  std::vector<float> values(count, 1.5F);
  std::vector<uint16_t> a(count);
  Narrow(DataType::kBf16, a.data(), values.data(), count);
  std::vector<uint16_t> b = a;
  Accumulate(DataType::kBf16, ReduceOp::kSum, a.data(), b.data(), count);
  Widen(DataType::kBf16, values.data(), a.data(), count);
  for (const float value : values) ASSERT_EQ(value, 3.0F);
}

}  // namespace
}  // namespace diapason::comm
