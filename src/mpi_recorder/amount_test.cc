#include "mpi_recorder/amount.h"

#include <gtest/gtest.h>

#include "mpi_recorder/fake_mpi.h"

namespace diapason::mpi_recorder {
namespace {

constexpr Word kGarbage = 0xdead;  // an argument that must not be read

Word At(const void* pointer) { return reinterpret_cast<Word>(pointer); }

class AmountTest : public testing::Test {
 protected:
  AmountTest() {
    comm_.ranks = comm_.others = 3;
    comm_.rank = 1;
    comm_.sources = 2;
  }

  template <MpiCount kCount>
  uint64_t Bytes(const std::vector<Word>& arguments) {
    return CallAmount<CBinding, kCount>(library_, comm_, arguments.data()).bytes;
  }

  MpiLibrary library_ = FakeMpi::Library();
  Comm comm_;
};

TEST_F(AmountTest, CountsWhatOpenMpisRulesCount) {
  EXPECT_EQ(Bytes<MpiCount::kBuffer>({kGarbage, 5, FakeMpi::kDouble, 0, 0}), 40u);
  EXPECT_EQ(Bytes<MpiCount::kReduction>({kGarbage, 0, 5, FakeMpi::kInt, FakeMpi::kSum, 0}), 20u);
  const Word each[] = {kGarbage, kGarbage, kGarbage, 0, 5, FakeMpi::kInt, 0};
  EXPECT_EQ(Bytes<MpiCount::kEach>(std::vector<Word>(each, each + 7)), 60u);
  EXPECT_EQ(Bytes<MpiCount::kEachNeighbor>(std::vector<Word>(each, each + 7)), 40u);
  EXPECT_EQ(Bytes<MpiCount::kReduceScatterBlock>({0, 0, 5, FakeMpi::kInt, FakeMpi::kSum, kGarbage}),
            60u);
  const int counts[] = {1, 2, 3};
  EXPECT_EQ(Bytes<MpiCount::kReduceScatter>({0, 0, At(counts), FakeMpi::kInt, FakeMpi::kSum, 0}),
            24u);
  EXPECT_EQ(Bytes<MpiCount::kNothing>({kGarbage}), 0u);
}

TEST_F(AmountTest, TheSideThatIsNotSignificantIsNotRead) {
  // Rank 1 of a gather to 0, then to 1 in place.
  EXPECT_EQ(Bytes<MpiCount::kGather>({0, 5, FakeMpi::kInt, 0, kGarbage, kGarbage, 0, 0}), 60u);
  EXPECT_EQ(Bytes<MpiCount::kGather>({1, kGarbage, kGarbage, 0, 6, FakeMpi::kInt, 1, 0}), 72u);
  EXPECT_EQ(Bytes<MpiCount::kScatter>({0, kGarbage, kGarbage, 0, 7, FakeMpi::kInt, 0, 0}), 84u);
  const int counts[] = {1, 2, 3};
  EXPECT_EQ(Bytes<MpiCount::kGatherv>({0, kGarbage, kGarbage, 0, At(counts), 0, FakeMpi::kInt, 1}),
            24u);
  EXPECT_EQ(Bytes<MpiCount::kGatherv>({0, 9, FakeMpi::kInt, 0, kGarbage, 0, kGarbage, 0}), 36u);
  EXPECT_EQ(Bytes<MpiCount::kScatterv>({0, At(counts), 0, FakeMpi::kInt, 0, kGarbage, kGarbage, 1}),
            24u);
  EXPECT_EQ(Bytes<MpiCount::kScatterv>({0, kGarbage, 0, kGarbage, 0, 9, FakeMpi::kInt, 0}), 36u);
  // In place the counts to send may be null.
  EXPECT_EQ(Bytes<MpiCount::kAlltoallv>({1, 0, 0, kGarbage, 0, At(counts), 0, FakeMpi::kInt}), 24u);
}

TEST_F(AmountTest, ATypeWithoutElementsNeedNotBeOne) {
  EXPECT_EQ(Bytes<MpiCount::kBuffer>({0, 0, kGarbage, 0, 0}), 0u);
  EXPECT_EQ(Bytes<MpiCount::kBuffer>({0, 5, FakeMpi::kNull, 0, 0}), 0u);
  EXPECT_EQ(Bytes<MpiCount::kBuffer>({0, static_cast<uint32_t>(-5), FakeMpi::kInt, 0, 0}), 0u);
  const int counts[] = {0, 2, 3};
  const Word types[] = {kGarbage, FakeMpi::kInt, FakeMpi::kDouble};
  EXPECT_EQ(Bytes<MpiCount::kAlltoallw>({0, 0, 0, 0, 0, At(counts), 0, At(types)}), 32u);
  EXPECT_EQ(Bytes<MpiCount::kNeighborAlltoallw>({0, 0, 0, 0, 0, At(counts), 0, At(types)}), 8u);
}

TEST_F(AmountTest, IntercommunicatorsHaveTheirOwnRoots) {
  comm_.inter = true;
  comm_.others = 2;
  const auto root = [](int number) { return static_cast<uint32_t>(number); };
  EXPECT_EQ(Bytes<MpiCount::kGather>({0, kGarbage, kGarbage, 0, 5, FakeMpi::kInt, root(-4)}), 40u);
  EXPECT_EQ(Bytes<MpiCount::kGather>({0, kGarbage, kGarbage, 0, kGarbage, kGarbage, root(-2)}), 0u);
  EXPECT_EQ(Bytes<MpiCount::kGather>({0, 5, FakeMpi::kInt, 0, kGarbage, kGarbage, root(0)}), 60u);
}

TEST_F(AmountTest, FortranPassesReferences) {
  library_.functions.type_f2c = [](int type) { return static_cast<Word>(type) + 90; };
  const int count = 5;
  const int type = 11;
  const Word arguments[] = {kGarbage, At(&count), At(&type)};
  EXPECT_EQ((CallAmount<FortranBinding, MpiCount::kBuffer>(library_, comm_, arguments).bytes), 40u);
  const int counts[] = {1, 0, 2};
  const int types[] = {11, -1, 10};
  const Word all[] = {0, 0, 0, 0, 0, At(counts), 0, At(types)};
  EXPECT_EQ((CallAmount<FortranBinding, MpiCount::kAlltoallw>(library_, comm_, all).bytes), 16u);
}

TEST_F(AmountTest, IntHandlesLoseWhatStandsBesideThem) {
  library_.abi.int_handles = true;
  EXPECT_EQ(Bytes<MpiCount::kBuffer>({0, 5, 0xabcd00000000u + FakeMpi::kInt, 0, 0}), 20u);
  const int counts[] = {1, 1, 1};
  const uint32_t types[] = {FakeMpi::kInt, FakeMpi::kDouble, FakeMpi::kInt};
  EXPECT_EQ(Bytes<MpiCount::kAlltoallw>({0, 0, 0, 0, 0, At(counts), 0, At(types)}), 16u);
}

TEST_F(AmountTest, OperationsThatAreNotCommutativeAreTold) {
  const auto told = [&](Word op) {
    const Word arguments[] = {0, 0, 1, FakeMpi::kInt, op};
    return NotCommutative<CBinding, MpiCount::kReduction>(library_, arguments);
  };
  EXPECT_FALSE(told(FakeMpi::kSum));
  EXPECT_TRUE(told(FakeMpi::kLast));
  EXPECT_FALSE(told(FakeMpi::kNull));
  EXPECT_FALSE((NotCommutative<CBinding, MpiCount::kBuffer>(library_, nullptr)));
}

}  // namespace
}  // namespace diapason::mpi_recorder
