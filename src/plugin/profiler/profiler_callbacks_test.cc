#include "plugin/profiler/profiler_callbacks.h"

#include <gtest/gtest.h>

#include <cstring>

#include "plugin/profiler/fake_comm_observer.h"

namespace diapason::plugin {
namespace {

constexpr int kAllGatherNumber = 2;
constexpr int kAllReduceNumber = 4;

class ProfilerCallbacksTest : public testing::Test {
 protected:
  ProfilerCallbacksTest() { FakeCommObservers::next = &comm_observer_; }
  ~ProfilerCallbacksTest() override { EndObserving(context_); }

  template <int kApi, class Event>
  void* Start(Event* event) {
    void* handle = &comm_observer_;  // must be overwritten
    EXPECT_EQ((StartEvent<kApi, Event>(context_, &handle, event)), 0);
    EXPECT_NE(handle, &comm_observer_);
    return handle;
  }
  template <class Event>
  static Event Blank(uint64_t type) {
    Event event;
    memset(&event, 0x5a, sizeof(event));  // unset fields must not be read
    event.type = static_cast<decltype(event.type)>(type);
    return event;
  }
  template <class Event>
  static Event Coll(const char* func, const char* algorithm, const char* protocol,
                    const char* type = "ncclFloat32") {
    Event event = Blank<Event>(abi::kEventColl);
    event.parent = nullptr;
    event.coll.sequence = 77;
    event.coll.func = func;
    event.coll.count = 1000;
    event.coll.datatype = type;
    event.coll.algorithm = algorithm;
    event.coll.protocol = protocol;
    return event;
  }
  void InitV5() { InitById<5>(&context_, 42, &mask_, "world", 2, 8, 3, nullptr); }

  FakeCommObservers comm_observers_;
  FakeCommObserver comm_observer_;
  void* context_ = nullptr;
  int mask_ = 0;
};

TEST_F(ProfilerCallbacksTest, EveryVersionTellsWhatItKnowsOfTheCommunicator) {
  EXPECT_EQ(InitUnknown<1>(&context_, &mask_), 0);
  EndObserving(context_);
  EXPECT_EQ(InitKnown<4>(&context_, &mask_, nullptr, 41, 2, 8, 3, nullptr), 0);
  EndObserving(context_);
  InitV5();
  ASSERT_EQ(FakeCommObservers::inits.size(), 3u);
  const ProfilerInit& unknown = FakeCommObservers::inits[0];
  EXPECT_EQ(unknown.api, 1);
  EXPECT_EQ(unknown.comm_id, 0u);
  EXPECT_EQ(unknown.ranks, 0);
  EXPECT_EQ(unknown.rank, -1);
  const ProfilerInit& known = FakeCommObservers::inits[1];
  EXPECT_EQ(known.api, 4);
  EXPECT_EQ(known.comm_id, 41u);
  EXPECT_EQ(known.name, "");
  const ProfilerInit& newest = FakeCommObservers::inits[2];
  EXPECT_EQ(newest.api, 5);
  EXPECT_EQ(newest.comm_id, 42u);
  EXPECT_EQ(newest.name, "world");
  EXPECT_EQ(newest.nodes, 2);
  EXPECT_EQ(newest.ranks, 8);
  EXPECT_EQ(newest.rank, 3);
  EXPECT_EQ(newest.mask, &mask_);
}

TEST_F(ProfilerCallbacksTest, VersionOneHasNumbers) {
  InitUnknown<1>(&context_, &mask_);
  auto event = Blank<abi::EventV1>(abi::kEventColl);
  event.coll.func = 4;
  event.coll.count = 10;
  event.coll.datatype = 8;  // float64
  event.coll.algorithm = 1;
  event.coll.protocol = 2;
  event.coll.sequence = 9;
  EXPECT_EQ((Start<1>(&event)), nullptr);
  const RunSeen& run = comm_observer_.runs.at(0);
  EXPECT_EQ(run.collective, kAllReduceNumber);
  EXPECT_EQ(run.bytes, 80u);
  EXPECT_EQ(run.algorithm, 1);
  EXPECT_EQ(run.protocol, 2);
  EXPECT_EQ(run.channels, 0) << "it tells what is allowed, not what is used";
  EXPECT_EQ(run.sequence, 9u);
  event.coll.func = 8;
  event.coll.algorithm = 200;
  event.coll.protocol = 3;
  event.coll.datatype = 99;
  Start<1>(&event);
  const RunSeen& strange = comm_observer_.runs.at(1);
  EXPECT_EQ(strange.collective, -1);
  EXPECT_EQ(strange.algorithm, -1);
  EXPECT_EQ(strange.protocol, -1);
  EXPECT_EQ(strange.bytes, 0u);
}

TEST_F(ProfilerCallbacksTest, NamesBecomeTheTunersNumbers) {
  InitUnknown<2>(&context_, &mask_);
  const char* const names[] = {"TREE",      "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",
                               "NVLS_TREE", "PAT"};
  for (int i = 0; i < 7; ++i) {
    auto event = Coll<abi::EventV2>("Reduce", names[i], "LL128");
    Start<2>(&event);
    EXPECT_EQ(comm_observer_.runs.back().algorithm, i) << names[i];
    EXPECT_EQ(comm_observer_.runs.back().protocol, 1);
    EXPECT_EQ(comm_observer_.runs.back().collective, 1);
  }
  auto event = Coll<abi::EventV2>("NewCollective", "NewAlgo", nullptr, "ncclFloat4");
  Start<2>(&event);
  EXPECT_EQ(comm_observer_.runs.back().collective, -1);
  EXPECT_EQ(comm_observer_.runs.back().algorithm, -1);
  EXPECT_EQ(comm_observer_.runs.back().protocol, -1);
  EXPECT_EQ(comm_observer_.runs.back().bytes, 0u);
}

TEST_F(ProfilerCallbacksTest, BytesAreCountedAsTheTunerCountsThem) {
  EXPECT_EQ(BytesAsAsked(kAllReduceNumber, 1000, 4, 8), 4000u);
  EXPECT_EQ(BytesAsAsked(kAllGatherNumber, 1000, 4, 8), 32000u);
  EXPECT_EQ(BytesAsAsked(3, 1000, 1, 8), 8000u);
  EXPECT_EQ(BytesAsAsked(kAllGatherNumber, 1000, 4, 0), 0u) << "ranks unknown";
  EXPECT_EQ(BytesAsAsked(-1, 1000, 4, 8), 0u);
  EXPECT_EQ(BytesAsAsked(kAllReduceNumber, UINT64_MAX, 4, 8), 0u) << "does not fit";
  EXPECT_EQ(BytesAsAsked(kAllGatherNumber, UINT64_MAX / 8, 8, 8), 0u);
}

TEST_F(ProfilerCallbacksTest, ACallAndItsRunAgreeOnBytes) {
  InitV5();
  auto call = Blank<abi::EventV5>(abi::kEventCollApi);
  call.coll_api.func = "AllGather";
  call.coll_api.count = 1000;
  call.coll_api.datatype = "ncclBfloat16";
  call.coll_api.captured = false;
  void* parent = Start<5>(&call);
  ASSERT_NE(parent, nullptr);
  EXPECT_EQ(StopEvent(parent), 0);
  auto run = Coll<abi::EventV5>("AllGather", "RING", "SIMPLE", "ncclInt8");
  run.parent = parent;
  run.coll.count = 2000;
  run.coll.channels = 2;
  EXPECT_NE((Start<5>(&run)), nullptr);
  EXPECT_EQ(comm_observer_.calls.at(0).bytes, 16000u);
  EXPECT_EQ(comm_observer_.runs.at(0).bytes, 16000u);
  EXPECT_EQ(comm_observer_.runs.at(0).channels, 2);
}

template <int kApi, class Event>
void CheckTimes(void* context, FakeCommObserver* comm_observer) {
  void* handle = nullptr;
  Event coll;
  memset(&coll, 0, sizeof(coll));
  coll.type = abi::kEventColl;
  coll.coll.func = "AllReduce";
  coll.coll.channels = 1;
  StartEvent<kApi, Event>(context, &handle, &coll);
  ASSERT_NE(handle, nullptr);
  StopEvent(handle);
  Event kernel;
  memset(&kernel, 0, sizeof(kernel));
  kernel.type = abi::kEventKernelCh;
  kernel.parent = handle;
  kernel.kernel_ch.channel = 5;
  kernel.kernel_ch.stamp = 1000;
  void* channel = nullptr;
  StartEvent<kApi, Event>(context, &channel, &kernel);
  ASSERT_NE(channel, nullptr);
  abi::StateV4 state{};
  state.stamp = 3000;
  RecordState(channel, 24, &state);   // another state
  RecordState(channel, 22, nullptr);  // no stamp
  EXPECT_TRUE(comm_observer->times.empty());
  RecordState(channel, 22, &state);
  StopEvent(channel);
  RecordState(channel, 22, &state);  // again, and late
  EXPECT_EQ(comm_observer->times, (std::vector<FakeCommObserver::Time>{{1, 1000, 3000}}));
}

TEST_F(ProfilerCallbacksTest, VersionFourIsTimed) {
  InitKnown<4>(&context_, &mask_, "x", 1, 1, 2, 0, nullptr);
  CheckTimes<4, abi::EventV4>(context_, &comm_observer_);
}
TEST_F(ProfilerCallbacksTest, VersionFiveIsTimed) {
  InitV5();
  CheckTimes<5, abi::EventV5>(context_, &comm_observer_);
}
TEST_F(ProfilerCallbacksTest, VersionSixIsTimed) {
  InitById<6>(&context_, 42, &mask_, "world", 2, 8, 3, nullptr);
  CheckTimes<6, abi::EventV6>(context_, &comm_observer_);
}

TEST_F(ProfilerCallbacksTest, VersionSevenIsTimed) {
  InitById<7>(&context_, 42, &mask_, "world", 2, 8, 3, nullptr);
  CheckTimes<7, abi::EventV7>(context_, &comm_observer_);
}

// A kernel that no tuner chooses: v7 says so, older versions have an empty protocol.
TEST_F(ProfilerCallbacksTest, SymmetricKernelsAreRecognised) {
  InitById<7>(&context_, 42, &mask_, "world", 2, 8, 3, nullptr);
  auto newest = Coll<abi::EventV7>("AllGather", "AGxLL_R", "");
  newest.coll.symmetric = true;
  Start<7>(&newest);
  EXPECT_TRUE(comm_observer_.runs.back().bypassed);
  newest.coll.symmetric = false;
  newest.coll.protocol = "LL";
  Start<7>(&newest);
  EXPECT_FALSE(comm_observer_.runs.back().bypassed);
  auto older = Coll<abi::EventV6>("AllGather", "AGxLL_R", "");
  Start<6>(&older);
  EXPECT_TRUE(comm_observer_.runs.back().bypassed);
  for (const char* protocol : {"LL", static_cast<const char*>(nullptr)}) {
    older.coll.protocol = protocol;
    Start<6>(&older);
    EXPECT_FALSE(comm_observer_.runs.back().bypassed);
  }
  auto oldest = Coll<abi::EventV2>("AllGather", "AGxLL_R", "");
  Start<2>(&oldest);
  EXPECT_TRUE(comm_observer_.runs.back().bypassed);
}

TEST_F(ProfilerCallbacksTest, PlansHaveHandlesInOldVersionsAndGroupsInNewOnes) {
  InitUnknown<3>(&context_, &mask_);
  auto old = Blank<abi::EventV3>(abi::kEventGroup);
  EXPECT_NE((Start<3>(&old)), nullptr);
  EndObserving(context_);
  InitV5();
  auto group = Blank<abi::EventV5>(abi::kEventGroup);
  EXPECT_EQ((Start<5>(&group)), nullptr);
  auto api = Blank<abi::EventV5>(abi::kEventGroupApi);
  void* number = Start<5>(&api);
  EXPECT_NE(number, nullptr);
  auto launch = Blank<abi::EventV5>(abi::kEventKernelLaunch);
  launch.kernel_launch.stream = &mask_;
  launch.parent = number;
  void* handle = Start<5>(&launch);
  EXPECT_NE(handle, nullptr);
  EXPECT_NE(comm_observer_.group_of_launch, 0u);
  EXPECT_EQ(comm_observer_.launches, 1);
  EXPECT_EQ(comm_observer_.stream_of_launch, &mask_);
  EXPECT_EQ(comm_observer_.ended_launches, 0);
  StopEvent(handle);
  EXPECT_EQ(comm_observer_.ended_launches, 1);
  EndObserving(context_);
  StopEvent(handle);
  EXPECT_EQ(comm_observer_.ended_launches, 1) << "late";
}

TEST_F(ProfilerCallbacksTest, WhatWasNotAskedForIsLeftAlone) {
  InitV5();
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t type = uint64_t{1} << bit;
    if ((type & (abi::kEventColl | abi::kEventCollApi | abi::kEventGroupApi |
                 abi::kEventKernelLaunch)) != 0) {
      continue;
    }
    auto event = Blank<abi::EventV6>(type);  // parents and names are garbage
    void* handle = &comm_observer_;
    EXPECT_EQ((StartEvent<6, abi::EventV6>(&mask_, &handle, &event)), 0);
    EXPECT_EQ(handle, nullptr) << bit;
  }
  auto both = Blank<abi::EventV6>(abi::kEventColl | abi::kEventCollApi);
  EXPECT_EQ((Start<6>(&both)), nullptr) << "types are told one at a time";
  EXPECT_TRUE(comm_observer_.calls.empty() && comm_observer_.runs.empty());
  EXPECT_EQ(comm_observer_.launches, 0);
}

TEST_F(ProfilerCallbacksTest, NullIsBorneEverywhere) {
  EXPECT_EQ(InitUnknown<1>(nullptr, &mask_), 0);
  EXPECT_EQ(InitById<6>(nullptr, 1, nullptr, nullptr, 0, 0, 0, nullptr), 0);
  void* handle = &comm_observer_;
  EXPECT_EQ((StartEvent<6, abi::EventV6>(nullptr, &handle, nullptr)), 0);
  EXPECT_EQ(handle, nullptr);
  auto event = Blank<abi::EventV6>(abi::kEventGroupApi);
  EXPECT_EQ((StartEvent<6, abi::EventV6>(nullptr, nullptr, &event)), 0);
  EXPECT_EQ(StopEvent(nullptr), 0);
  EXPECT_EQ(RecordState(nullptr, 22, nullptr), 0);
  EXPECT_EQ(RecordNothing(nullptr, 22, nullptr), 0);
  EXPECT_EQ(EndObserving(nullptr), 0);
}

}  // namespace
}  // namespace diapason::plugin
