#include "plugin/profiler/event_links.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "plugin/profiler/event_handle.h"
#include "plugin/profiler/observer_table.h"

namespace diapason::plugin {
namespace {

using Kind = EventLinks::Kind;
using Link = EventLinks::Link;

constexpr int kPlaces = 1 << 16;  // of calls

void* Address(uint64_t number) { return reinterpret_cast<void*>(number); }

class EventLinksTest : public testing::Test {
 protected:
  EventLinksTest() { context_ = ObserverTable::GoLive(ObserverTable::Claim()); }
  ~EventLinksTest() override { End(); }
  void End() {
    Observed* slot = nullptr;
    if (ObserverTable::Close(context_, &slot)) ObserverTable::Free(slot);
  }
  void* Begin(Kind kind, uint64_t number) const {
    const uint64_t place = EventLinks::Claim(kind);
    if (place == 0) return nullptr;
    return EventLinks::Publish(place, {Address(number), Address(number + 1), context_, 7});
  }

  uint64_t context_ = 0;
};

TEST_F(EventLinksTest, ALinkLeadsToBothHandles) {
  void* handle = Begin(Kind::kCall, 40);
  ASSERT_NE(handle, nullptr);
  Link link;
  ASSERT_TRUE(EventLinks::Read(handle, &link));
  EXPECT_EQ(link.own, Address(40));
  EXPECT_EQ(link.second, Address(41));
  EXPECT_EQ(link.context, context_);
  EXPECT_EQ(link.mask, 7);
  EventLinks::Stop(handle);
  EXPECT_TRUE(EventLinks::Read(handle, &link)) << "children come after their parent's stop";
  EXPECT_TRUE(EventLinks::IsLink(handle));
}

TEST_F(EventLinksTest, OthersAreNoLinks) {
  Link link;
  for (void* handle : {static_cast<void*>(nullptr), Address(8), static_cast<void*>(&link),
                       MakeHandle(HandleKind::kRun, 5), MakeHandle(HandleKind::kLink, 0),
                       MakeHandle(HandleKind::kLink, kHandlePayloadMask)}) {
    EXPECT_FALSE(EventLinks::Read(handle, &link)) << handle;
    EventLinks::Stop(handle);
  }
  EXPECT_FALSE(EventLinks::IsLink(MakeHandle(HandleKind::kRun, 5)));
}

TEST_F(EventLinksTest, AnAbandonedPlaceIsFree) {
  const uint64_t place = EventLinks::Claim(Kind::kPart);
  ASSERT_NE(place, 0u);
  EventLinks::Abandon(place);
  Link link;
  EXPECT_FALSE(EventLinks::Read(MakeHandle(HandleKind::kLink, place), &link));
}

TEST_F(EventLinksTest, TheOldestThatStoppedIsReusedAndKnownToBe) {
  void* first = Begin(Kind::kCall, 2);
  EventLinks::Stop(first);
  for (int i = 0; i < kPlaces; ++i) EventLinks::Stop(Begin(Kind::kCall, 1000));
  Link link;
  EXPECT_FALSE(EventLinks::Read(first, &link));
}

TEST_F(EventLinksTest, WhatHasNotStoppedStaysAndMemoryIsBounded) {
  std::vector<void*> held;
  for (int i = 0; i < 2 * kPlaces; ++i) {
    void* handle = Begin(Kind::kPart, static_cast<uint64_t>(i) + 2);
    if (handle != nullptr) held.push_back(handle);
  }
  EXPECT_GT(held.size(), kPlaces * 9u / 10);
  EXPECT_LE(held.size(), static_cast<size_t>(kPlaces));
  Link link;
  for (void* handle : held) ASSERT_TRUE(EventLinks::Read(handle, &link));
  EXPECT_EQ(Begin(Kind::kPart, 5), nullptr);
  End();  // all of them belong to a communicator that has ended
  context_ = ObserverTable::GoLive(ObserverTable::Claim());
  EXPECT_NE(Begin(Kind::kPart, 5), nullptr);
}

TEST_F(EventLinksTest, CapturedCallsStayWithTheirCommunicator) {
  void* captured = Begin(Kind::kCaptured, 2);
  EventLinks::Stop(captured);
  std::vector<void*> others;
  for (int i = 0; i < 3 * kPlaces; ++i) {
    void* handle = Begin(i % 2 == 0 ? Kind::kCaptured : Kind::kCall, 1000);
    ASSERT_NE(handle, nullptr) << i << ": when their own places are used up, those of calls serve";
    EventLinks::Stop(handle);
  }
  Link link;
  EXPECT_TRUE(EventLinks::Read(captured, &link));
}

TEST_F(EventLinksTest, ThreadsNeverReadAMixture) {
  std::atomic<void*> newest{nullptr};
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop.load()) {
      Link link;
      if (!EventLinks::Read(newest.load(), &link)) continue;
      const auto own = reinterpret_cast<uint64_t>(link.own);
      ASSERT_EQ(reinterpret_cast<uint64_t>(link.second), own + 1);
    }
  });
  for (uint64_t i = 0; i < 400'000; ++i) {
    void* handle = Begin(Kind::kPart, 2 * i + 2);
    ASSERT_NE(handle, nullptr);
    newest.store(handle);
    EventLinks::Stop(handle);
  }
  stop.store(true);
  reader.join();
}

}  // namespace
}  // namespace diapason::plugin
