#include "mpi_recorder/communicators.h"

#include <gtest/gtest.h>

#include "mpi_recorder/fake_mpi.h"

namespace diapason::mpi_recorder {
namespace {

class CommTableTest : public testing::Test {
 protected:
  CommTableTest()
      : table_(std::make_unique<CommTable>(
            &library_, [this](const mpi_record::CommBlock& block, const std::string& name) {
              blocks_.push_back(block);
              names_.push_back(name);
            })) {}

  MpiLibrary library_ = FakeMpi::Library();
  std::vector<mpi_record::CommBlock> blocks_;
  std::vector<std::string> names_;
  std::unique_ptr<CommTable> table_;
};

TEST_F(CommTableTest, ACommunicatorIsDescribedOnce) {
  FakeMpi::comms[10] = {4, 2, 0, 0, 0};
  Comm* comm = table_->Find(10);
  ASSERT_NE(comm, nullptr);
  EXPECT_EQ(table_->Find(10), comm);
  EXPECT_EQ(FakeMpi::described, 1);
  EXPECT_EQ(comm->number, 1u);
  EXPECT_EQ(comm->rank, 2);
  EXPECT_EQ(comm->ranks, 4u);
  EXPECT_EQ(comm->others, 4u);
  EXPECT_FALSE(comm->inter);
  EXPECT_TRUE(FakeMpi::with_attribute.contains(10));
  ASSERT_EQ(blocks_.size(), 1u);
  EXPECT_EQ(blocks_[0].ranks, 4u);
  EXPECT_EQ(names_[0], "x");
}

TEST_F(CommTableTest, AHandleThatComesAgainIsAnotherCommunicator) {
  FakeMpi::comms[10] = {4, 2, 0, 0, 0};
  table_->Find(10)->calls = 5;
  table_->Remove(10);
  ASSERT_EQ(blocks_.size(), 2u);
  EXPECT_EQ(blocks_[1].number, 1u);
  EXPECT_EQ(blocks_[1].id, blocks_[0].id);
  EXPECT_GT(blocks_[1].ended_ns, 0u);
  FakeMpi::comms[10] = {2, 0, 0, 0, 0};
  Comm* again = table_->Find(10);
  EXPECT_EQ(again->number, 2u);
  EXPECT_EQ(again->ranks, 2u);
  EXPECT_EQ(again->calls, 0u);
  table_->Remove(99);  // never seen
  EXPECT_EQ(blocks_.size(), 3u);
}

TEST_F(CommTableTest, MembersMakeTheId) {
  FakeMpi::comms[10] = FakeMpi::comms[11] = {4, 0, 0, 0, 0};
  EXPECT_NE(table_->Find(10)->id, table_->Find(11)->id);  // the fake's members differ by handle
}

TEST_F(CommTableTest, IntercommunicatorsAndNeighboursHaveTheirCounts) {
  FakeMpi::comms[20] = {3, 1, 5, 0, 0};
  FakeMpi::comms[21] = {9, 4, 0, 1, 2};  // two dimensions
  FakeMpi::comms[22] = {9, 4, 0, 2, 3};
  FakeMpi::comms[23] = {9, 4, 0, 3, 6};
  EXPECT_EQ(table_->Find(20)->others, 5u);
  EXPECT_TRUE(table_->Find(20)->inter);
  EXPECT_EQ(table_->Find(21)->sources, 4u);
  EXPECT_EQ(table_->Find(22)->sources, 3u);
  EXPECT_EQ(table_->Find(23)->sources, 6u);
}

TEST_F(CommTableTest, NullIsNoCommunicator) {
  EXPECT_EQ(table_->Find(FakeMpi::kNull), nullptr);
  EXPECT_EQ(table_->Find(0), nullptr);
  EXPECT_EQ(FakeMpi::described, 0);
}

TEST_F(CommTableTest, ManyCommunicatorsAtOnceAreBounded) {
  for (Word handle = 1000; handle < 41000; ++handle) FakeMpi::comms[handle] = {2, 0, 0, 0, 0};
  size_t known = 0;
  for (Word handle = 1000; handle < 41000; ++handle) known += table_->Find(handle) != nullptr;
  EXPECT_GT(known, 8000u);
  EXPECT_LE(known, 16384u);
  for (Word handle = 1000; handle < 41000; ++handle) table_->Remove(handle);
  EXPECT_NE(table_->Find(1000), nullptr);
}

TEST(NodesOfJob, IsWhatTheLauncherSays) {
  std::map<std::string, std::string> variables;
  const auto get = [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  EXPECT_EQ(NodesOfJob(get), 0u);
  variables = {{"OMPI_COMM_WORLD_SIZE", "16"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "8"}};
  EXPECT_EQ(NodesOfJob(get), 2u);
  variables["OMPI_COMM_WORLD_LOCAL_SIZE"] = "5";  // nodes of different sizes
  EXPECT_EQ(NodesOfJob(get), 0u);
  variables = {{"SLURM_STEP_NUM_NODES", "3"}};
  EXPECT_EQ(NodesOfJob(get), 3u);
  variables = {{"SLURM_STEP_NUM_NODES", "many"}};
  EXPECT_EQ(NodesOfJob(get), 0u);
}

}  // namespace
}  // namespace diapason::mpi_recorder
