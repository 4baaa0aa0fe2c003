#include "plugin/abi/constants.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace diapason::plugin {
namespace {

// The published layouts, written down once more.
template <int kGenerations>
struct Layout {
  double base[7][3];
  double hardware[3][7][3];
  double limits[5][kGenerations][3];
};
using V6 = Layout<4>;
using V7 = Layout<5>;
static_assert(sizeof(V6) == ConstantsBytes(5) && sizeof(V6) == ConstantsBytes(6));
static_assert(sizeof(V7) == ConstantsBytes(7) && offsetof(V7, limits) == 672);

template <typename T>
T Numbered(double first) {
  T layout;
  auto* values = reinterpret_cast<double*>(&layout);
  for (size_t i = 0; i < sizeof(T) / sizeof(double); ++i)
    values[i] = first + static_cast<double>(i);
  return layout;
}

abi::Constants* As(void* layout) { return static_cast<abi::Constants*>(layout); }

TEST(ConstantsTest, ARowThatOnlyTheTargetHasKeepsItsValue) {
  V7 newer = Numbered<V7>(1000);
  const V7 before = newer;
  V6 older = Numbered<V6>(5000);
  ConvertConstants(As(&newer), 7, As(&older), 6);
  EXPECT_EQ(std::memcmp(&older, &newer, offsetof(V6, limits)), 0);
  for (int limit = 0; limit < 5; ++limit) {
    for (int row = 0; row < 4; ++row) {
      for (int scale = 0; scale < 3; ++scale) {
        EXPECT_EQ(older.limits[limit][row][scale], newer.limits[limit][row][scale]);
        older.limits[limit][row][scale] *= 2;
      }
    }
  }
  older.base[6][2] = -3;
  ConvertConstants(As(&older), 6, As(&newer), 7);
  EXPECT_EQ(newer.base[6][2], -3);
  for (int limit = 0; limit < 5; ++limit) {
    for (int row = 0; row < 5; ++row) {
      for (int scale = 0; scale < 3; ++scale) {
        EXPECT_EQ(newer.limits[limit][row][scale],
                  before.limits[limit][row][scale] * (row < 4 ? 2 : 1))
            << limit << " " << row;
      }
    }
  }
}

TEST(ConstantsTest, NothingBeyondTheLayoutOfTheVersionIsTouched) {
  for (const int api : {5, 6, 7}) {
    std::vector<double> library(ConstantsBytes(api) / sizeof(double) + 1, 7.0);
    KeptConstants kept;
    kept.Keep(As(library.data()), api);
    for (double& value : library) value = 9.0;
    kept.Restore();
    for (size_t i = 0; i + 1 < library.size(); ++i) ASSERT_EQ(library[i], 7.0) << api << " " << i;
    EXPECT_EQ(library.back(), 9.0);
  }
}

TEST(ConstantsTest, AfterInitThePointerIsNotUsed) {
  std::vector<double> library(ConstantsBytes(7) / sizeof(double), 7.0);
  KeptConstants kept;
  kept.Keep(As(library.data()), 7);
  kept.Forget();
  for (double& value : library) value = 9.0;
  kept.Restore();
  for (const double value : library) ASSERT_EQ(value, 9.0);
}

}  // namespace
}  // namespace diapason::plugin
