#include "comm/backends/nccl/communicator.h"

#include <gtest/gtest.h>

#include <thread>

#include "comm/backends/nccl/backend.h"
#include "comm/backends/nccl/fake_gpu.h"

namespace diapason::comm::nccl {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

Deadline In(milliseconds limit) { return steady_clock::now() + limit; }

class NcclCommunicatorTest : public testing::Test {
 protected:
  std::unique_ptr<Communicator> Make(bool choose = false) {
    NcclCommunicator::Parts parts{&api_, &gpu_, 0, choose, 0};
    Result<std::unique_ptr<Communicator>> made =
        NcclCommunicator::Make(parts, Members(), In(seconds(120)));
    EXPECT_TRUE(made.ok()) << made.status().message();
    return std::move(made).value();
  }
  // Job ranks 4, 5 and 6: a communicator's ranks are not the job's.
  Membership Members() {
    return {{4, 5, 6}, 0, "some", &store_, [](const std::string&) {}};
  }

  FakeGpu gpu_;
  FakeNccl library_{&gpu_};
  NcclApi api_ = library_.Api();
  FakeStore store_;
  std::vector<float> in_{1, 2, 3, 4};
  std::vector<float> out_{0, 0, 0, 0};
  Call call_ = AllReduceCall(in_.data(), out_.data(), 4, DataType::kF32);
};

TEST_F(NcclCommunicatorTest, HostMemoryGoesThereAndBack) {
  auto communicator = Make();
  ASSERT_TRUE(communicator->Run(call_, In(seconds(120))).ok());
  EXPECT_EQ(out_, (std::vector<float>{3, 6, 9, 12}));
  EXPECT_EQ(in_, (std::vector<float>{1, 2, 3, 4}));
  call_.out = in_.data();
  ASSERT_TRUE(communicator->Run(call_, In(seconds(120))).ok());
  EXPECT_EQ(in_, (std::vector<float>{3, 6, 9, 12}));
}

TEST_F(NcclCommunicatorTest, GatherInPlaceInHostMemory) {
  auto communicator = Make();
  std::vector<float> all{7, 8, 0, 0, 0, 0};
  ASSERT_TRUE(
      communicator->Run(AllGatherCall(all.data(), all.data(), 2, DataType::kF32), In(seconds(120)))
          .ok());
  EXPECT_EQ(all, (std::vector<float>{7, 8, 7, 8, 7, 8}));
}

TEST_F(NcclCommunicatorTest, CoalescedTensorsAreOneGroup) {
  auto communicator = Make();
  std::vector<Tensor> tensors{
      {in_.data(), out_.data(), 1}, {in_.data(), nullptr, 0}, {in_.data() + 2, out_.data() + 2, 2}};
  ASSERT_TRUE(
      communicator->Run(CoalescedAllReduceCall(tensors, DataType::kF32), In(seconds(120))).ok());
  EXPECT_EQ(out_, (std::vector<float>{3, 0, 9, 12}));
  EXPECT_EQ(library_.groups, 1);
}

TEST_F(NcclCommunicatorTest, TheGpuKnowsHowLongItTook) {
  auto communicator = Make();
  auto pending = communicator->Start(call_, In(seconds(120)));
  ASSERT_TRUE(pending.ok());
  ASSERT_TRUE(pending.value()->Wait(In(seconds(120))).ok());
  EXPECT_TRUE(pending.value()->Done());
  EXPECT_EQ(pending.value()->Seconds(), 0.25);
}

TEST_F(NcclCommunicatorTest, MemoryIsLentAgainOnlyAfterTheEnd) {
  auto communicator = Make();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(communicator->Run(call_, In(seconds(120))).ok());
  const size_t allocated = gpu_.allocated();
  EXPECT_EQ(allocated, 3U);  // the barrier's element, one block on the GPU, one pinned
  gpu_.HoldUp();
  std::vector<float> other(4);
  Call second = call_;
  second.out = other.data();
  auto a = communicator->Start(call_, In(seconds(120)));
  auto b = communicator->Start(second, In(seconds(120)));
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(gpu_.allocated(), allocated + 2);
  EXPECT_FALSE(a.value()->Done());
  gpu_.LetGo();
  EXPECT_TRUE(b.value()->Wait(In(seconds(120))).ok());
  EXPECT_EQ(other, (std::vector<float>{3, 6, 9, 12}));
}

TEST_F(NcclCommunicatorTest, MessagesThatAreStartedTogetherBeginTogether) {
  auto communicator = Make();
  auto send = communicator->Start(SendCall(in_.data(), 4, DataType::kF32, 1), In(seconds(120)));
  auto recv = communicator->Start(RecvCall(out_.data(), 4, DataType::kF32, 1), In(seconds(120)));
  ASSERT_TRUE(send.ok() && recv.ok());
  EXPECT_EQ(library_.messages, 0);
  EXPECT_TRUE(recv.value()->Wait(In(seconds(120))).ok());
  EXPECT_EQ(library_.messages, 2);
  EXPECT_EQ(library_.groups, 1);
  EXPECT_EQ(out_, (std::vector<float>{8, 8, 8, 8}));
  EXPECT_TRUE(send.value()->Wait(In(seconds(120))).ok());
  // Later calls come after them.
  send = communicator->Start(SendCall(in_.data(), 4, DataType::kF32, 1), In(seconds(120)));
  EXPECT_EQ(library_.messages, 2);
  EXPECT_TRUE(communicator->Run(call_, In(seconds(120))).ok());
  EXPECT_EQ(library_.messages, 3);
  // Calls that the program does not wait for are dropped with their group.
  send = communicator->Start(SendCall(in_.data(), 4, DataType::kF32, 1), In(seconds(120)));
  communicator.reset();
  EXPECT_EQ(library_.messages, 3);
  EXPECT_FALSE(send.value()->Wait(In(seconds(120))).ok());
}

TEST_F(NcclCommunicatorTest, OurOwnStreamComesAfterTheDefaultOne) {
  auto communicator = Make();
  ASSERT_TRUE(communicator->Run(call_, In(seconds(120))).ok());
  EXPECT_EQ(gpu_.follows, 1);
  call_.stream = &gpu_;
  ASSERT_TRUE(communicator->Run(call_, In(seconds(120))).ok());
  EXPECT_EQ(gpu_.follows, 1);
}

TEST_F(NcclCommunicatorTest, GpuMemoryMustBeAligned) {
  auto communicator = Make();
  auto* host = reinterpret_cast<char*>(in_.data());
  EXPECT_TRUE(communicator->CanRun(AllReduceCall(host + 1, host + 1, 2, DataType::kF32)).ok());
  Call odd = AllReduceCall(host + 1, host + 1, 2, DataType::kF32);
  odd.memory = Memory::kDevice;
  EXPECT_EQ(communicator->CanRun(odd).code(), ErrorCode::kInvalid);
  odd.type = DataType::kU8;
  EXPECT_TRUE(communicator->CanRun(odd).ok());
}

TEST_F(NcclCommunicatorTest, EndsInOrder) {
  Make().reset();
  EXPECT_EQ(library_.destroys, 1);
  EXPECT_EQ(library_.aborts, 0);
  EXPECT_EQ(gpu_.allocated(), 0U);
}

TEST_F(NcclCommunicatorTest, TheLimitAbortsOnceAndIsKept) {
  auto communicator = Make();
  library_.operations_hang = true;
  const Status status = communicator->Run(call_, In(milliseconds(30)));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), ErrorCode::kTimeout);
  EXPECT_EQ(communicator->Run(call_, In(seconds(120))).message(), status.message());
  communicator->Abandon();
  communicator->Interrupt("too late");
  communicator.reset();
  EXPECT_EQ(library_.aborts, 1);
  EXPECT_EQ(library_.destroys, 0);
}

TEST_F(NcclCommunicatorTest, AfterAnErrorHostMemoryIsLeftAlone) {
  auto communicator = Make();
  gpu_.HoldUp();
  api_.CommAbort = [](NcclComm) { return kSuccess; };  // the GPU continues by itself, later
  EXPECT_FALSE(communicator->Run(call_, In(milliseconds(30))).ok());
  gpu_.LetGo();
  EXPECT_EQ(out_, (std::vector<float>{0, 0, 0, 0}));
}

TEST_F(NcclCommunicatorTest, ALostRankEndsTheWait) {
  auto communicator = Make();
  library_.operations_hang = true;
  store_.lost = 3;  // of another group
  auto pending = communicator->Start(call_, In(seconds(120)));
  ASSERT_TRUE(pending.ok());
  EXPECT_FALSE(pending.value()->Done());
  store_.lost = 5;
  const Status status = pending.value()->Wait(In(seconds(120)));
  EXPECT_EQ(status.code(), ErrorCode::kPeerLost);
  EXPECT_NE(status.message().find("rank 5"), std::string::npos) << status.message();
}

TEST_F(NcclCommunicatorTest, TheLibrarysOwnErrorEndsTheWait) {
  auto communicator = Make();
  library_.operations_hang = true;
  library_.async_error = kRemoteError;
  const Status status = communicator->Run(call_, In(seconds(120)));
  EXPECT_EQ(status.code(), ErrorCode::kPeerLost);
  EXPECT_NE(status.message().find("a warning"), std::string::npos) << status.message();
}

TEST_F(NcclCommunicatorTest, ACallThatIsStuckInTheLibraryIsFreed) {
  auto communicator = Make();
  library_.calls_hang = true;
  Status status;
  std::thread caller([&] { status = communicator->Run(call_, In(seconds(120))); });
  while (!library_.inside) std::this_thread::yield();
  communicator->Interrupt("over the limit");
  caller.join();
  EXPECT_EQ(status.code(), ErrorCode::kTimeout);
  EXPECT_EQ(status.message(), "over the limit");
  communicator.reset();
  EXPECT_EQ(library_.aborts, 1);
}

TEST_F(NcclCommunicatorTest, ALostRankFreesACallThatIsStuckInTheLibrary) {
  auto communicator = Make();
  library_.calls_hang = true;
  store_.lost = 6;
  const Status status = communicator->Run(call_, In(seconds(120)));
  EXPECT_EQ(status.code(), ErrorCode::kPeerLost);
  EXPECT_NE(status.message().find("rank 6"), std::string::npos) << status.message();
  EXPECT_EQ(library_.aborts, 1);
}

TEST_F(NcclCommunicatorTest, CreationIsBounded) {
  library_.creation_hangs = true;
  NcclCommunicator::Parts parts{&api_, &gpu_, 0, false, 0};
  const auto made = NcclCommunicator::Make(parts, Members(), In(milliseconds(50)));
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), ErrorCode::kTimeout);
  // The abandoned thread ends the communicator that is created late.
  library_.creation_hangs = false;
  const Deadline until = In(seconds(120));
  while ((library_.aborts == 0 || gpu_.bound != 0) && steady_clock::now() < until) {
    std::this_thread::yield();
  }
  EXPECT_EQ(library_.aborts, 1);
}

TEST_F(NcclCommunicatorTest, CreationEndsWithALostRank) {
  library_.creation_hangs = true;
  store_.lost = 5;
  NcclCommunicator::Parts parts{&api_, &gpu_, 0, false, 0};
  const auto made = NcclCommunicator::Make(parts, Members(), In(seconds(120)));
  EXPECT_EQ(made.status().code(), ErrorCode::kPeerLost);
  library_.creation_hangs = false;
  const Deadline until = In(seconds(120));
  while ((library_.aborts == 0 || gpu_.bound != 0) && steady_clock::now() < until) {
    std::this_thread::yield();
  }
  EXPECT_EQ(library_.aborts, 1);
}

TEST_F(NcclCommunicatorTest, AWorkThatOutlivesItsGroupSaysSo) {
  auto communicator = Make();
  auto pending = communicator->Start(call_, In(seconds(120)));
  ASSERT_TRUE(pending.ok());
  communicator.reset();
  EXPECT_FALSE(pending.value()->Wait(In(seconds(120))).ok());
  EXPECT_TRUE(pending.value()->Done());
}

TEST_F(NcclCommunicatorTest, InAGraphThereIsNothingToWaitFor) {
  auto communicator = Make();
  gpu_.capturing = true;
  call_.stream = &gpu_;
  const auto refused = communicator->Start(call_, In(seconds(120)));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), ErrorCode::kUnavailable);
  call_.in = call_.out = gpu_.Allocate(16).value();
  const auto pending = communicator->Start(call_, In(seconds(120)));
  ASSERT_TRUE(pending.ok());
  EXPECT_TRUE(pending.value()->Captured());
  EXPECT_TRUE(pending.value()->Done());
  EXPECT_TRUE(pending.value()->Wait(In(seconds(120))).ok());
}

TEST_F(NcclCommunicatorTest, ConfigurationsThatCannotBeAreRefused) {
  call_.config.algorithm = kRing;
  EXPECT_NE(Make()->CanRun(call_).message().find("choose"), std::string::npos);
  auto communicator = Make(true);
  const auto refused = [&](const char* word) {
    const Status status = communicator->CanRun(call_);
    EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
  };
  refused("libnccl-tuner-diapason.so");  // nothing has loaded it here
  call_.config.channels = 65;
  refused("channels");
  call_.config = {kPat, kSimple, 0};
  refused("never runs all_reduce as pat/simple");
  call_.config = {kRing, kSimple, 0, 4096};
  refused("segment");
  call_.config = {kRing, kSimple, 0};
  call_.operation = Operation::kAllToAll;
  refused("all_to_all");
  api_.version = 21805;
  call_.operation = Operation::kAllReduce;
  communicator = Make(true);
  refused("2.19");
}

TEST(NcclLibraryTest, VersionsAsPeopleWriteThem) {
  NcclApi api{};
  api.version = 22809;
  EXPECT_EQ(api.VersionText(), "2.28.9");
  api.version = 2708;
  EXPECT_EQ(api.VersionText(), "2.7.8");
}

TEST(NcclLibraryTest, RanksShareAGpuInsideAHostOnlyWhereTheUserAndTheVersionPermitIt) {
  const auto shares = [](Library library, int version, const char* value) {
    const std::map<std::string, std::string> set = {{"NCCL_MULTI_RANK_GPU_ENABLE", value}};
    return SharesGpuInsideHost(library, version, MapEnvironment(set));
  };
  EXPECT_TRUE(shares(Library::kNccl, 23003, "1"));
  EXPECT_TRUE(shares(Library::kNccl, 23102, "0x1"));
  EXPECT_FALSE(shares(Library::kNccl, 22907, "1"));
  EXPECT_FALSE(shares(Library::kNccl, 23007, "0"));
  EXPECT_FALSE(shares(Library::kNccl, 23007, "yes"));
  EXPECT_FALSE(shares(Library::kRccl, 23007, "1"));
  EXPECT_FALSE(SharesGpuInsideHost(Library::kNccl, 23007, MapEnvironment({})));
}

}  // namespace
}  // namespace diapason::comm::nccl
