#include "plugin/tuner/pin.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace diapason::plugin {
namespace {

TEST(PinTest, NothingIsPinnedAtFirst) {
  const PinnedChoice pin;
  EXPECT_EQ(pin.Get(), PinnedChoice::kNone);
}

TEST(PinTest, EveryPinInRangeIsReadBack) {
  PinnedChoice pin;
  for (int algorithm = kKeep; algorithm <= 15; ++algorithm) {
    for (int protocol = kKeep; protocol <= 7; ++protocol) {
      for (const int channels : {0, 1, 64, 127}) {
        ASSERT_TRUE(pin.Set(algorithm, protocol, channels));
        ASSERT_NE(pin.Get(), PinnedChoice::kNone);
        ASSERT_EQ(PinnedChoice::Unpack(pin.Get()), (Config{algorithm, protocol, channels}));
      }
    }
  }
}

TEST(PinTest, TheLibrarysOwnChoiceCanBePinnedToo) {
  PinnedChoice pin;
  ASSERT_TRUE(pin.Set(kKeep, kKeep, 0));
  EXPECT_NE(pin.Get(), PinnedChoice::kNone);
  EXPECT_TRUE(PinnedChoice::Unpack(pin.Get()).IsDefault());
}

TEST(PinTest, ANumberOutOfRangeIsRefusedAndThePinStays) {
  PinnedChoice pin;
  ASSERT_TRUE(pin.Set(kTree, kLl, 2));
  pin.CountAsked();
  EXPECT_FALSE(pin.Set(-2, kLl, 2));
  EXPECT_FALSE(pin.Set(16, kLl, 2));
  EXPECT_FALSE(pin.Set(kTree, -2, 2));
  EXPECT_FALSE(pin.Set(kTree, 8, 2));
  EXPECT_FALSE(pin.Set(kTree, kLl, -1));
  EXPECT_FALSE(pin.Set(kTree, kLl, 128));
  EXPECT_FALSE(pin.Set(INT32_MIN, INT32_MAX, INT32_MAX));
  EXPECT_EQ(PinnedChoice::Unpack(pin.Get()), (Config{kTree, kLl, 2}));
  EXPECT_EQ(pin.asked(), 1u);
}

TEST(PinTest, ClearUnpinsAndMayBeRepeated) {
  PinnedChoice pin;
  ASSERT_TRUE(pin.Set(kTree, kLl, 2));
  pin.Clear();
  pin.Clear();
  EXPECT_EQ(pin.Get(), PinnedChoice::kNone);
}

TEST(PinTest, CountsAreThoseOfTheLastPin) {
  PinnedChoice pin;
  ASSERT_TRUE(pin.Set(kTree, kLl, 2));
  pin.CountAsked();
  pin.CountAsked();
  pin.CountApplied();
  pin.Clear();
  EXPECT_EQ(pin.asked(), 2u) << "still to be read after the pin";
  EXPECT_EQ(pin.applied(), 1u);
  ASSERT_TRUE(pin.Set(kRing, kLl, 2));
  EXPECT_EQ(pin.asked(), 0u);
  EXPECT_EQ(pin.applied(), 0u);
}

TEST(PinTest, AReaderSeesOnePinOrTheOtherNeverHalfOfEach) {
  PinnedChoice pin;
  ASSERT_TRUE(pin.Set(0, 0, 1));
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int i = 0; i < 20000; ++i) pin.Set(i % 8, i % 8, i % 8 + 1);
    done.store(true);
  });
  bool whole = true;
  while (!done.load()) {
    const Config config = PinnedChoice::Unpack(pin.Get());
    whole = config.algorithm == config.protocol && config.channels == config.algorithm + 1 && whole;
  }
  writer.join();
  EXPECT_TRUE(whole);
}

TEST(PinTest, TheProcessHasOne) { EXPECT_EQ(&PinnedChoice::Instance(), &PinnedChoice::Instance()); }

}  // namespace
}  // namespace diapason::plugin
