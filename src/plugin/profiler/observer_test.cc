#include "plugin/profiler/observer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <thread>

#include "domain/vocabulary.h"
#include "plugin/profiler/event_handle.h"
#include "plugin/profiler/event_mask.h"
#include "plugin/profiler/fake_comm_observer.h"

namespace diapason::plugin {
namespace {

class ObserverTest : public testing::Test {
 protected:
  ~ObserverTest() override {
    for (void* context : contexts_) ProfilerObserver::Finalize(context);
  }
  void* Create(FakeCommObserver* comm_observer, int api = 5) {
    FakeCommObservers::next = comm_observer;
    ProfilerInit init;
    init.api = api;
    init.ranks = 4;
    init.mask = &word_;
    void* context = ProfilerObserver::Create(init);
    contexts_.push_back(context);
    return context;
  }
  // A call of its own, up to its Coll, on `channels` channels. Returns the run's handle.
  static void* Call(void* context, int channels = 1) {
    void* call = ProfilerObserver::StartCollApi(context, ProfilerObserver::StartGroupApi(),
                                                {4, 0, false}, {1000, 4});
    ProfilerObserver::StartKernelLaunch(context, nullptr, nullptr);
    return Run(context, call, channels);
  }
  static void* Run(void* context, void* parent, int channels = 1) {
    RunSeen run;
    run.collective = 4;
    run.channels = channels;
    return ProfilerObserver::StartColl(context, parent, run, {1000, 4});
  }
  static void Time(void* run, uint64_t start, uint64_t stop, int channel = 0) {
    ProfilerObserver::StopKernelChannel(ProfilerObserver::StartKernelChannel(run, channel, start),
                                        stop);
  }

  FakeCommObservers comm_observers_;
  FakeCommObserver comm_observer_;
  int word_ = 0;
  std::vector<void*> contexts_;
};

using Times = std::vector<FakeCommObserver::Time>;

TEST_F(ObserverTest, AnEagerCallIsToldFromCallToTime) {
  void* context = Create(&comm_observer_);
  ASSERT_NE(context, nullptr);
  void* run = Call(context, 2);
  EXPECT_EQ(comm_observer_.launches, 1);
  ASSERT_EQ(comm_observer_.calls.size(), 1u);
  EXPECT_EQ(comm_observer_.calls[0].bytes, 4000u);
  ASSERT_EQ(comm_observer_.runs.size(), 1u);
  EXPECT_FALSE(comm_observer_.runs[0].replayed);
  Time(run, 100, 200, 0);
  EXPECT_EQ(comm_observer_.times, Times{}) << "one channel is missing";
  Time(run, 90, 150, 1);
  EXPECT_EQ(comm_observer_.times, (Times{{1, 90, 200}}));
}

TEST_F(ObserverTest, CallsAndLaunchesNameTheirGroup) {
  void* context = Create(&comm_observer_);
  void* first = ProfilerObserver::StartGroupApi();
  void* second = ProfilerObserver::StartGroupApi();
  ProfilerObserver::StartCollApi(context, first, {4, 0, false}, {10, 4});
  ProfilerObserver::StartKernelLaunch(context, second, nullptr);
  const uint64_t of_call = comm_observer_.calls.back().group;
  EXPECT_NE(of_call, 0u);
  EXPECT_NE(comm_observer_.group_of_launch, 0u);
  EXPECT_NE(comm_observer_.group_of_launch, of_call);
  ProfilerObserver::StartKernelLaunch(context, first, nullptr);
  EXPECT_EQ(comm_observer_.group_of_launch, of_call);
  int foreign = 0;
  for (void* parent : {static_cast<void*>(nullptr), static_cast<void*>(&foreign), context}) {
    ProfilerObserver::StartKernelLaunch(context, parent, nullptr);
    EXPECT_EQ(comm_observer_.group_of_launch, 0u) << "not a group";
  }
}

TEST_F(ObserverTest, NoObserverMeansNoContext) {
  word_ = 5;
  EXPECT_EQ(Create(nullptr), nullptr);
  EXPECT_EQ(word_, 5) << "left to those who are";
  EXPECT_EQ(Call(nullptr), nullptr);
}

TEST_F(ObserverTest, NothingIsRememberedWhenNoTimesAreWanted) {
  void* context = Create(&comm_observer_);
  comm_observer_.next_tag = 0;
  EXPECT_EQ(Call(context), nullptr);
  EXPECT_EQ(comm_observer_.runs.size(), 1u);
}

TEST_F(ObserverTest, RunsOfUnknownWidthAreNotTimed) {
  void* context = Create(&comm_observer_);
  const uint64_t before = ReadObserverCounts().untimeable;
  EXPECT_EQ(Call(context, 0), nullptr) << "the library does not tell how many channels";
  EXPECT_EQ(Call(context, 129), nullptr);
  EXPECT_EQ(ReadObserverCounts().untimeable, before + 2);
}

TEST_F(ObserverTest, ReplaysKnowTheirCapture) {
  void* context = Create(&comm_observer_);
  void* captured = ProfilerObserver::StartCollApi(context, nullptr, {4, 0, true}, {10, 4});
  ASSERT_NE(captured, nullptr);
  EXPECT_TRUE(comm_observer_.calls.at(0).captured);
  std::thread([&] {
    for (uint64_t i = 0; i < 5; ++i) Time(Run(context, captured), 100 * i + 100, 100 * i + 150);
  }).join();
  ASSERT_EQ(comm_observer_.runs.size(), 5u);
  for (const RunSeen& run : comm_observer_.runs) EXPECT_TRUE(run.replayed);
  EXPECT_EQ(comm_observer_.times.size(), 5u);
  Call(context);
  EXPECT_FALSE(comm_observer_.runs.back().replayed);
}

TEST_F(ObserverTest, AFinalisedContextIsDeaf) {
  FakeCommObserver comm_observer;
  void* context = Create(&comm_observer);
  void* run = Call(context);
  void* channel = ProfilerObserver::StartKernelChannel(run, 0, 100);
  ProfilerObserver::Finalize(context);
  EXPECT_EQ(FakeCommObservers::detached, std::vector<CommObserver*>{&comm_observer});
  const uint64_t late = ReadObserverCounts().late;
  ProfilerObserver::StopKernelChannel(channel, 200);
  EXPECT_EQ(ReadObserverCounts().late, late + 1);
  EXPECT_EQ(Call(context), nullptr);
  EXPECT_EQ(ProfilerObserver::StartGroup(context), nullptr);
  ProfilerObserver::Finalize(context);
  EXPECT_EQ(FakeCommObservers::detached.size(), 1u) << "once";
  EXPECT_EQ(comm_observer.times, Times{});
  EXPECT_EQ(comm_observer.runs.size(), 1u);
}

TEST_F(ObserverTest, ItsSlotInOtherHandsDoesNotHearIt) {
  void* old = Create(&comm_observer_);
  ProfilerObserver::Finalize(old);
  FakeCommObserver other;
  for (int i = 0; i < 600; ++i) {  // round the table
    void* context = Create(&other);
    ASSERT_NE(context, old);
    Call(old);
    if (i < 599) ProfilerObserver::Finalize(context);
  }
  EXPECT_EQ(comm_observer_.calls.size() + other.calls.size(), 0u);
}

TEST_F(ObserverTest, ForeignValuesAreRecognised) {
  void* context = Create(&comm_observer_);
  void* run = Call(context);
  const uint64_t word = reinterpret_cast<uint64_t>(run);
  int on_stack = 0;
  const uint64_t values[] = {1,
                             reinterpret_cast<uint64_t>(&on_stack),
                             reinterpret_cast<uint64_t>(&comm_observer_),
                             UINT64_MAX,
                             0xdeadbeefdeadbeef & ~(uint64_t{0xffff} << 48),
                             word ^ (uint64_t{1} << 62),   // another process's tag
                             word ^ (uint64_t{7} << 44),   // another kind
                             word ^ (uint64_t{1} << 30)};  // a run that was never there
  for (const uint64_t value : values) {
    void* handle = reinterpret_cast<void*>(value);
    EXPECT_EQ(ProfilerObserver::StartKernelChannel(handle, 0, 5), nullptr) << std::hex << value;
    ProfilerObserver::StopKernelChannel(handle, 6);
    EXPECT_EQ(Call(handle), nullptr);
    ProfilerObserver::Finalize(handle);
  }
  EXPECT_EQ(comm_observer_.calls.size(), 1u);
  Time(run, 10, 20);
  EXPECT_EQ(comm_observer_.times, (Times{{1, 10, 20}})) << "unharmed";
}

TEST_F(ObserverTest, HandlesAreNoAddresses) {
  void* context = Create(&comm_observer_);
  void* run = Call(context);
  EXPECT_GE(reinterpret_cast<uint64_t>(context) >> 63, 1u);
  const uint64_t upper = reinterpret_cast<uint64_t>(run) >> 56;
  EXPECT_TRUE(upper >= 0x80 && upper < 0xff) << upper;
  EXPECT_NE(reinterpret_cast<uint64_t>(run) >> 48 & 0xff, 0u);
}

TEST_F(ObserverTest, ImpossibleTimesAreDropped) {
  void* context = Create(&comm_observer_);
  const uint64_t before = ReadObserverCounts().bad_stamps;
  Time(Call(context), 200, 100);
  Time(Call(context), 0, 100);
  Time(Call(context), 100, 0);
  Time(Call(context), 100, 100 + 60'000'000'001);
  EXPECT_EQ(ReadObserverCounts().bad_stamps, before + 4);
  EXPECT_EQ(comm_observer_.times, Times{});
  Time(Call(context), 100, 100 + 60'000'000'000);
  EXPECT_EQ(comm_observer_.times.size(), 1u);
}

TEST_F(ObserverTest, ALaggingLibraryIsNotBelieved) {
  void* context = Create(&comm_observer_);
  const uint64_t before = ReadObserverCounts().overrun;
  // The proxy thread has slept: its ring of 64 now holds later stamps for the first 6 of 70.
  std::vector<void*> runs;
  for (int i = 0; i < 70; ++i) runs.push_back(Call(context));
  const auto true_start = [](int i) { return 1000 + 100 * static_cast<uint64_t>(i); };
  for (int i = 0; i < 70; ++i) {
    const uint64_t start = true_start(i < 6 ? i + 64 : i);
    Time(runs[static_cast<size_t>(i)], start, start + 50);
  }
  std::set<uint64_t> tags;
  for (const auto& [tag, start, stop] : comm_observer_.times) {
    tags.insert(tag);
    EXPECT_EQ(start, true_start(static_cast<int>(tag) - 1));
    EXPECT_EQ(stop, start + 50);
  }
  EXPECT_EQ(tags.size(), 64u) << "all that are true";
  EXPECT_EQ(comm_observer_.times.size(), 64u);
  EXPECT_EQ(ReadObserverCounts().overrun, before + 6);
}

TEST_F(ObserverTest, ADeepQueueIsBelievedInHindsight) {
  void* context = Create(&comm_observer_);
  std::vector<void*> runs;
  for (int i = 0; i < 300; ++i) runs.push_back(Call(context));
  for (size_t i = 0; i < 300; ++i) Time(runs[i], 1000 + 100 * i, 1050 + 100 * i);
  EXPECT_EQ(comm_observer_.times.size(), 300u);
}

TEST_F(ObserverTest, AHugeGroupStaysInDoubt) {
  void* context = Create(&comm_observer_);
  std::vector<void*> calls;
  for (int i = 0; i < 80; ++i) {
    calls.push_back(ProfilerObserver::StartCollApi(context, nullptr, {4, 0, false}, {10, 4}));
  }
  ProfilerObserver::StartKernelLaunch(context, nullptr, nullptr);
  std::vector<void*> runs;
  for (void* call : calls) runs.push_back(Run(context, call));
  for (size_t i = 0; i < runs.size(); ++i) Time(runs[i], 1000 + 100 * i, 1050 + 100 * i);
  EXPECT_EQ(comm_observer_.times, Times{}) << "which of them came first is not known";
  Time(Call(context), 900'000, 900'010);
  EXPECT_EQ(comm_observer_.times.size(), 1u);
}

TEST_F(ObserverTest, ASmallGroupIsTimedInAnyOrder) {
  void* context = Create(&comm_observer_);
  void* first = ProfilerObserver::StartCollApi(context, nullptr, {4, 0, false}, {10, 4});
  void* second = ProfilerObserver::StartCollApi(context, nullptr, {4, 0, false}, {20, 4});
  ProfilerObserver::StartKernelLaunch(context, nullptr, nullptr);
  Time(Run(context, second), 100, 200);
  Time(Run(context, first), 200, 300);
  EXPECT_EQ(comm_observer_.times, (Times{{1, 100, 200}, {2, 200, 300}}));
}

TEST_F(ObserverTest, VersionsWithoutCallsAreTimedToo) {
  void* context = Create(&comm_observer_, 4);
  for (uint64_t i = 0; i < 100; ++i) {
    void* group = ProfilerObserver::StartGroup(context);
    ASSERT_NE(group, nullptr);
    Time(Run(context, group), 1000 + 100 * i, 1050 + 100 * i);
  }
  EXPECT_EQ(comm_observer_.times.size(), 100u);
  EXPECT_FALSE(comm_observer_.runs[0].replayed);
}

TEST_F(ObserverTest, VersionsWithoutStampsAreNotTimed) {
  void* context = Create(&comm_observer_, 3);
  EXPECT_EQ(Run(context, ProfilerObserver::StartGroup(context)), nullptr);
  EXPECT_EQ(comm_observer_.runs.size(), 1u);
}

TEST_F(ObserverTest, CommunicatorsDoNotMix) {
  FakeCommObserver other;
  void* one = Create(&comm_observer_);
  void* two = Create(&other);
  other.next_tag = 1000;
  void* first = Call(one);
  void* second = Call(two);
  Time(second, 30, 40);
  Time(first, 10, 20);
  EXPECT_EQ(comm_observer_.times, (Times{{1, 10, 20}}));
  EXPECT_EQ(other.times, (Times{{1000, 30, 40}}));
}

TEST_F(ObserverTest, TheMaskFollowsTheCommunicators) {
  EventMask& mask = EventMask::Instance();
  mask.Want(EventMask::Need::kRuns);
  void* context = Create(&comm_observer_);
  EXPECT_EQ(word_, 2);
  ProfilerObserver::Finalize(context);
  EXPECT_EQ(word_, 0);
  mask.Unwant(EventMask::Need::kRuns);
}

// Leaves when it is told to.
class SlowCommObserver : public FakeCommObserver {
 public:
  void LaunchEnded() noexcept override {}
  void Launched(uint64_t, void*) noexcept override {
    entered = true;
    for (int i = 0; i < 120'000 && !leave; ++i) usleep(1000);
    left = true;
  }
  bool WaitUntilEntered() const {
    for (int i = 0; i < 120'000 && !entered; ++i) usleep(1000);
    return entered;
  }
  std::atomic<bool> entered{false};
  std::atomic<bool> leave{false};
  std::atomic<bool> left{false};
};

TEST_F(ObserverTest, FinalizeWaitsForWhoIsInside) {
  SlowCommObserver slow;
  void* context = Create(&slow);
  std::thread inside([&] { ProfilerObserver::StartKernelLaunch(context, nullptr, nullptr); });
  ASSERT_TRUE(slow.WaitUntilEntered());
  std::thread end([&] { ProfilerObserver::Finalize(context); });
  EXPECT_TRUE(FakeCommObservers::detached.empty());
  slow.leave = true;
  inside.join();
  end.join();
  EXPECT_EQ(FakeCommObservers::detached.size(), 1u);
  EXPECT_TRUE(slow.left);
}

TEST_F(ObserverTest, FinalizeDoesNotWaitForEver) {
  SlowCommObserver slow;
  void* context = Create(&slow);
  std::thread inside([&] { ProfilerObserver::StartKernelLaunch(context, nullptr, nullptr); });
  ASSERT_TRUE(slow.WaitUntilEntered());
  const uint64_t before = ReadObserverCounts().stuck;
  ProfilerObserver::Finalize(context);
  EXPECT_TRUE(FakeCommObservers::detached.empty()) << "it must live on";
  EXPECT_EQ(ReadObserverCounts().stuck, before + 1);
  slow.leave = true;
  inside.join();
}

TEST_F(ObserverTest, EventsAndEndsMayMeet) {
  std::vector<std::thread> threads;
  std::atomic<void*> shared{nullptr};
  std::atomic<bool> stop{false};
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (uint64_t round = 1; !stop; ++round) {
        void* context = shared;
        Time(Call(context), round, round + 1);
      }
    });
  }
  for (int i = 0; i < 300; ++i) {
    // Destroyed right after Finalize: a later use would be detected.
    FakeCommObserver comm_observer;
    FakeCommObservers::next = &comm_observer;
    ProfilerInit init;
    init.api = 6;
    init.mask = &word_;
    void* context = ProfilerObserver::Create(init);
    shared = context;
    if (i % 16 == 0) usleep(200);
    ProfilerObserver::Finalize(context);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(FakeCommObservers::detached.size(), 300u);
}

}  // namespace
}  // namespace diapason::plugin
