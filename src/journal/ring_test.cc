#include "journal/ring.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace diapason::journal {
namespace {

// Large enough to be torn, and able to detect it.
struct Item {
  uint64_t producer = 0;
  uint64_t number = 0;
  uint64_t copies[30] = {};

  static Item Of(uint64_t producer, uint64_t number) {
    Item item{producer, number, {}};
    for (uint64_t& copy : item.copies) copy = producer << 32 | number;
    return item;
  }
  bool Whole() const {
    for (const uint64_t copy : copies) {
      if (copy != (producer << 32 | number)) return false;
    }
    return true;
  }
};

TEST(RingTest, ComesOutInTheOrderItWentIn) {
  Ring<int> ring(8);
  int value = 0;
  EXPECT_FALSE(ring.Pop(&value)) << "empty at first";
  int next_in = 0;
  int next_out = 0;
  // Many times round, at every fill level.
  for (int level = 1; level <= 8; ++level) {
    for (int round = 0; round < 10; ++round) {
      for (int i = 0; i < level; ++i) ASSERT_TRUE(ring.Push(next_in++));
      for (int i = 0; i < level; ++i) {
        ASSERT_TRUE(ring.Pop(&value));
        ASSERT_EQ(value, next_out++);
      }
      ASSERT_FALSE(ring.Pop(&value));
    }
  }
  EXPECT_EQ(ring.pushed(), static_cast<uint64_t>(next_in));
}

TEST(RingTest, AFullRingSaysNoAndKeepsWhatItHas) {
  Ring<int> ring(4);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(ring.Push(i));
  EXPECT_FALSE(ring.Push(99));
  EXPECT_FALSE(ring.Push(99));
  EXPECT_EQ(ring.pushed(), 4u) << "what was refused does not count";
  int value = -1;
  ASSERT_TRUE(ring.Pop(&value));
  EXPECT_EQ(value, 0);
  EXPECT_TRUE(ring.Push(4)) << "there is room again";
  EXPECT_FALSE(ring.Push(99));
  for (int expected = 1; expected <= 4; ++expected) {
    ASSERT_TRUE(ring.Pop(&value));
    EXPECT_EQ(value, expected);
  }
  EXPECT_FALSE(ring.Pop(&value));
}

TEST(RingTest, EveryCapacityHoldsAtLeastWhatWasAskedForAndAllThatItTook) {
  for (const size_t capacity : {1, 2, 3, 4, 5, 64, 100}) {
    Ring<size_t> ring(capacity);
    size_t taken = 0;
    while (taken < 1000 && ring.Push(taken)) ++taken;
    EXPECT_GE(taken, capacity);
    EXPECT_LE(taken, 2 * capacity) << "rounded up to a power of two";
    size_t value = 0;
    for (size_t i = 0; i < taken; ++i) {
      ASSERT_TRUE(ring.Pop(&value)) << capacity;
      ASSERT_EQ(value, i) << capacity;
    }
    EXPECT_FALSE(ring.Pop(&value));
  }
}

// Producers push their numbers in order; one consumer takes them. Returns how many were refused.
uint64_t RunProducers(size_t capacity, uint64_t producers, uint64_t each,
                      std::vector<std::vector<uint64_t>>* taken) {
  Ring<Item> ring(capacity);
  std::atomic<uint64_t> refused{0};
  std::atomic<uint64_t> finished{0};
  std::vector<std::thread> threads;
  for (uint64_t producer = 0; producer < producers; ++producer) {
    threads.emplace_back([&, producer] {
      for (uint64_t number = 0; number < each; ++number) {
        if (!ring.Push(Item::Of(producer, number))) refused.fetch_add(1);
      }
      finished.fetch_add(1);
    });
  }
  taken->assign(producers, {});
  Item item;
  while (true) {
    const bool last_round = finished.load() == producers;
    while (ring.Pop(&item)) {
      EXPECT_TRUE(item.Whole());
      if (item.producer >= producers) break;
      (*taken)[item.producer].push_back(item.number);
    }
    if (last_round) break;
  }
  for (std::thread& thread : threads) thread.join();
  return refused.load();
}

TEST(RingTest, ManyProducersLoseNothingWhileTheRingIsNotFull) {
  constexpr uint64_t kProducers = 8;
  constexpr uint64_t kEach = 2000;
  std::vector<std::vector<uint64_t>> taken;
  EXPECT_EQ(RunProducers(kProducers * kEach, kProducers, kEach, &taken), 0u);
  for (const std::vector<uint64_t>& numbers : taken) {
    ASSERT_EQ(numbers.size(), kEach);
    for (uint64_t i = 0; i < kEach; ++i) ASSERT_EQ(numbers[i], i) << "each producer's order";
  }
}

TEST(RingTest, ManyProducersOfASmallRingLoseOnlyWhatTheyAreTold) {
  constexpr uint64_t kProducers = 8;
  constexpr uint64_t kEach = 20000;
  std::vector<std::vector<uint64_t>> taken;
  const uint64_t refused = RunProducers(16, kProducers, kEach, &taken);
  uint64_t total = 0;
  for (const std::vector<uint64_t>& numbers : taken) {
    total += numbers.size();
    for (size_t i = 1; i < numbers.size(); ++i) ASSERT_LT(numbers[i - 1], numbers[i]);
  }
  EXPECT_EQ(total + refused, kProducers * kEach);
}

}  // namespace
}  // namespace diapason::journal
