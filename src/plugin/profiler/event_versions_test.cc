#include "plugin/profiler/event_versions.h"

#include <gtest/gtest.h>

#include <cstring>

namespace diapason::plugin {
namespace {

abi::EventV7 Event(uint64_t type) {
  abi::EventV7 event;
  memset(&event, 0, sizeof(event));
  event.type = type;
  return event;
}

// tests/abi compares whole runs with what a profiler is told alone.
TEST(EventVersionsTest, AnEventThatTheOlderVersionLacksIsDropped) {
  AnyEvent converted;
  for (int bit = 0; bit < 64; ++bit) {
    const abi::EventV7 event = Event(uint64_t{1} << bit);
    for (int to = 1; to <= 7; ++to) {
      const int last = to <= 2 ? 5 : to <= 4 ? 7 : to == 5 ? 11 : to == 6 ? 14 : 15;
      EXPECT_EQ(ConvertEvent(7, to, &event, {}, &converted), bit <= last) << bit << " to v" << to;
    }
  }
  const abi::EventV7 both = Event(abi::kEventColl | abi::kEventP2p);
  EXPECT_FALSE(ConvertEvent(7, 7, &both, {}, &converted)) << "types come one at a time";
}

TEST(EventVersionsTest, UnknownNamesBecomeWhatTheLibraryMakesOfThem) {
  abi::EventV7 event = Event(abi::kEventColl);
  event.coll.func = "NewCollective";
  event.coll.algorithm = "AGxLL_R";
  event.coll.protocol = "";
  event.coll.datatype = nullptr;
  AnyEvent converted;
  ASSERT_TRUE(ConvertEvent(7, 1, &event, {}, &converted));
  EXPECT_EQ(converted.v1.coll.func, 6) << "Send";
  EXPECT_EQ(converted.v1.coll.algorithm, 6) << "PAT";
  EXPECT_EQ(converted.v1.coll.protocol, 2) << "simple";
  EXPECT_EQ(converted.v1.coll.datatype, 8) << "float64";
}

TEST(EventVersionsTest, StatesOfOtherVersionsAreDropped) {
  AnyState converted;
  void* passed = nullptr;
  abi::StateV4 state{};
  state.stamp = 5;
  EXPECT_FALSE(ConvertState(7, 6, abi::kStateKernelPhaseStop, &state, &converted, &passed));
  EXPECT_TRUE(ConvertState(7, 7, abi::kStateKernelPhaseStop, &state, &converted, &passed));
  EXPECT_EQ(converted.v4.stamp, 5u);
  EXPECT_FALSE(ConvertState(6, 5, 25, &state, &converted, &passed)) << "copy engines";
  EXPECT_FALSE(ConvertState(6, 4, 23, nullptr, &converted, &passed)) << "GroupApi";
  EXPECT_FALSE(ConvertState(6, 3, abi::kStateKernelChStop, &state, &converted, &passed));
  EXPECT_TRUE(ConvertState(6, 5, 23, nullptr, &converted, &passed));
  EXPECT_EQ(passed, &converted) << "an older version has arguments";
  EXPECT_TRUE(ConvertState(6, 6, 23, nullptr, &converted, &passed));
  EXPECT_EQ(passed, nullptr);
}

TEST(EventVersionsTest, AMaskMeansWhatItsVersionHas) {
  EXPECT_EQ(EffectiveMask(7, abi::kEventKernelPhase), abi::kEventKernelPhase | abi::kEventKernelCh);
  EXPECT_EQ(EffectiveMask(6, abi::kEventKernelPhase), 0);
  EXPECT_EQ(EffectiveMask(5, -1), 0xfff);
  EXPECT_FALSE(IsToldOf(abi::kEventKernelCh, abi::kEventColl));
  EXPECT_TRUE(IsToldOf(abi::kEventColl, abi::kEventKernelCh));
  EXPECT_FALSE(IsToldOf(abi::kEventGroupApi, 0));
}

}  // namespace
}  // namespace diapason::plugin
