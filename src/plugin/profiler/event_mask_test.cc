#include "plugin/profiler/event_mask.h"

#include <gtest/gtest.h>
#include <sys/statvfs.h>

#include <thread>
#include <vector>

namespace diapason::plugin {
namespace {

using Need = EventMask::Need;

constexpr int kGroup = 1;
constexpr int kColl = 2;
constexpr int kKernelCh = 64;
constexpr int kCollApi = 512;
constexpr int kKernelLaunch = 2048;

TEST(EventMaskTest, AtRestNothingIsAskedFor) {
  EventMask mask;
  int word = 77;
  mask.Attach(&word, 6);
  EXPECT_EQ(word, 0);
}

TEST(EventMaskTest, NewLibrariesAreAskedForCallsRunsAndTimes) {
  EventMask mask;
  int word = 0;
  mask.Attach(&word, 5);
  mask.Want(Need::kCalls);
  EXPECT_EQ(word, kCollApi | kKernelLaunch);
  mask.Want(Need::kRuns);
  EXPECT_EQ(word, kCollApi | kKernelLaunch | kColl);
  mask.Want(Need::kTimes);
  EXPECT_EQ(word, kCollApi | kKernelLaunch | kColl | kKernelCh);
  mask.Unwant(Need::kRuns);
  mask.Unwant(Need::kCalls);
  EXPECT_EQ(word, kColl | kKernelCh);
  mask.Unwant(Need::kTimes);
  EXPECT_EQ(word, 0);
}

TEST(EventMaskTest, OldLibrariesAreNotAskedForWhatTheyDoNotHave) {
  EventMask mask;
  for (const Need need : {Need::kCalls, Need::kRuns, Need::kTimes}) mask.Want(need);
  for (const int api : {1, 2, 3}) EXPECT_EQ(mask.Value(api), kGroup | kColl) << api;
  EXPECT_EQ(mask.Value(4), kGroup | kColl | kKernelCh);
  mask.Unwant(Need::kRuns);
  mask.Unwant(Need::kTimes);
  for (const int api : {1, 2, 3, 4}) EXPECT_EQ(mask.Value(api), 0) << api;
}

TEST(EventMaskTest, ASecondProfilersWishIsAddedAndNotForbidden) {
  EventMask mask;
  int word = 0;
  mask.Attach(&word, 7);
  mask.WantForSecond(kColl | kKernelCh);
  EXPECT_EQ(word, kColl | kKernelCh);
  EXPECT_EQ(mask.Value(7), 0) << "the plugin's own";
  mask.Want(Need::kCalls);
  mask.ForbidTimes();
  EXPECT_EQ(word, kCollApi | kKernelLaunch | kColl | kKernelCh);
  mask.WantForSecond(0);
  EXPECT_EQ(word, kCollApi | kKernelLaunch);
  mask.WantForSecond(kColl);
  mask.Detach(&word);
  EXPECT_EQ(word, 0);
}

// Somebody else changes the word: the next change of the plugin's own makes it right again.
TEST(EventMaskTest, AWordChangedByOthersIsWrittenAgain) {
  EventMask mask;
  int word = 0;
  mask.Attach(&word, 7);
  mask.Want(Need::kCalls);
  for (const int changed : {0, 0xffff}) {
    word = changed;
    mask.Want(Need::kRuns);
    EXPECT_EQ(word, kCollApi | kKernelLaunch | kColl);
    mask.Unwant(Need::kRuns);
    EXPECT_EQ(word, kCollApi | kKernelLaunch);
  }
}

TEST(EventMaskTest, WantsAreCounted) {
  EventMask mask;
  mask.Unwant(Need::kRuns);  // too many of these take nothing away
  mask.Want(Need::kRuns);
  mask.Want(Need::kRuns);
  mask.Unwant(Need::kRuns);
  EXPECT_EQ(mask.Value(6), kColl);
  mask.Unwant(Need::kRuns);
  EXPECT_EQ(mask.Value(6), 0);
}

TEST(EventMaskTest, TimesCanBeForbiddenForGood) {
  EventMask mask;
  int word = 0;
  mask.Attach(&word, 6);
  mask.Want(Need::kTimes);
  mask.Want(Need::kCalls);
  EXPECT_FALSE(mask.TimesForbidden());
  mask.ForbidTimes();
  EXPECT_TRUE(mask.TimesForbidden());
  EXPECT_EQ(word, kCollApi | kKernelLaunch);
  mask.Want(Need::kTimes);
  EXPECT_EQ(word, kCollApi | kKernelLaunch);
}

TEST(EventMaskTest, AWordIsWrittenWhileItHasCommunicators) {
  EventMask mask;
  mask.Want(Need::kRuns);
  int word = 0;
  mask.Attach(&word, 6);
  mask.Attach(&word, 6);
  mask.Detach(&word);
  EXPECT_EQ(word, kColl);
  mask.Detach(&word);
  EXPECT_EQ(word, 0);
  mask.Want(Need::kCalls);
  EXPECT_EQ(word, 0) << "forgotten";
  mask.Attach(&word, 6);
  EXPECT_EQ(word, kColl | kCollApi | kKernelLaunch);
}

TEST(EventMaskTest, EveryCopyOfTheLibraryHasItsOwnWord) {
  EventMask mask;
  std::vector<int> words(5, 9);
  for (size_t i = 0; i < words.size(); ++i) mask.Attach(&words[i], i == 0 ? 4 : 6);
  mask.Want(Need::kRuns);
  EXPECT_EQ(words, (std::vector<int>{kGroup | kColl, kColl, kColl, kColl, 0})) << "one too many";
  mask.Detach(&words[4]);
  mask.Detach(&words[0]);
  mask.Attach(&words[4], 6);
  EXPECT_EQ(words, (std::vector<int>{0, kColl, kColl, kColl, kColl}));
  mask.Attach(nullptr, 6);
  mask.Detach(nullptr);
}

TEST(EventMaskTest, TheLastStateIsPublishedFromAnyThread) {
  EventMask mask;
  int word = 0;
  mask.Attach(&word, 6);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&mask, i] {
      const Need need = i % 2 == 0 ? Need::kRuns : Need::kCalls;
      for (int round = 0; round < 2000; ++round) {
        mask.Want(need);
        mask.Unwant(need);
      }
      if (i == 3) mask.Want(Need::kTimes);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(word, kColl | kKernelCh);
}

TEST(TimesPossibleTest, SharedMemoryMustHaveSpace) {
  EXPECT_FALSE(TimesPossible(2, "/no/such/place"));
  // File systems such as /proc have no free space at all.
  EXPECT_FALSE(TimesPossible(1, "/proc"));
}

TEST(TimesPossibleTest, MoreRanksNeedMoreUpToAHostful) {
  struct statvfs space {};
  ASSERT_EQ(statvfs("/", &space), 0);
  const uint64_t free_mib = space.f_bavail * space.f_frsize >> 20;
  EXPECT_EQ(TimesPossible(1, "/"), free_mib >= 128);
  EXPECT_EQ(TimesPossible(2, "/"), free_mib >= 128);
  EXPECT_EQ(TimesPossible(8, "/"), free_mib >= 512);
  EXPECT_EQ(TimesPossible(100'000, "/"), free_mib >= 1024);
  EXPECT_EQ(TimesPossible(-5, "/"), free_mib >= 128);
}

}  // namespace
}  // namespace diapason::plugin
