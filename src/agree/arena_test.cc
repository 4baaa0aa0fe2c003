#include "agree/arena.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <thread>

#include "base/random.h"
#include "base/text.h"

namespace diapason::agree {
namespace {

constexpr uint64_t kBytes = 1 << 20;

struct Block {
  explicit Block(uint64_t size = kBytes) : words(size / 8), size_bytes(size) {
    Arena::Prepare(words.data(), size, 77);
  }
  std::vector<uint64_t> words;
  uint64_t size_bytes;
  char* bytes() { return reinterpret_cast<char*>(words.data()); }
  Arena Open() { return Arena(words.data(), size_bytes); }
};

TEST(Arena, TheFirstValueStands) {
  Block block;
  ASSERT_TRUE(Arena::Check(block.words.data(), kBytes).ok());
  Arena one = block.Open();
  Arena two = block.Open();
  EXPECT_FALSE(one.Read("a").value().has_value());
  EXPECT_EQ(one.Propose("a", "1").value(), "1");
  EXPECT_EQ(two.Propose("a", "2").value(), "1");
  EXPECT_EQ(two.Read("a").value(), "1");
  EXPECT_EQ(two.Propose("b", "").value(), "");
  EXPECT_EQ(one.Read("b").value(), "");
  EXPECT_FALSE(one.Read("c").value().has_value());
}

TEST(Arena, ManyKeysInOneChain) {
  Block block(8 << 20);
  Arena arena = block.Open();
  for (int i = 0; i < 30000; ++i) {
    ASSERT_TRUE(arena.Propose(Format("k{}", i), Format("v{}", i)).ok());
  }
  for (int i = 0; i < 30000; ++i) ASSERT_EQ(arena.Read(Format("k{}", i)).value(), Format("v{}", i));
}

TEST(Arena, RacingThreadsAllGetTheSameValue) {
  Block block(8 << 20);
  constexpr int kThreads = 8;
  constexpr int kKeys = 3000;
  std::vector<std::vector<std::string>> got(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Arena arena = block.Open();
      for (int i = 0; i < kKeys; ++i) {
        const Result<std::string> stands =
            arena.Propose(Format("k{}", i), Format("{} of {}", t, i));
        got[static_cast<size_t>(t)].push_back(stands.ok() ? stands.value() : "error");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 1; t < kThreads; ++t) EXPECT_EQ(got[static_cast<size_t>(t)], got[0]);
  for (int i = 0; i < kKeys; ++i) {
    EXPECT_TRUE(got[0][static_cast<size_t>(i)].ends_with(Format(" of {}", i)));
  }
}

// `between` runs between the search and the publication, and so creates the race.
TEST(Arena, TheFirstProposalStands) {
  Block block(8 << 20);
  Arena fast = block.Open();
  Arena slow(block.words.data(), block.size_bytes,
             [&] { EXPECT_EQ(fast.Propose("a", "fast").value(), "fast"); });
  EXPECT_EQ(slow.Propose("a", "slow").value(), "fast");
  EXPECT_EQ(slow.Read("a").value(), "fast");
}

TEST(Arena, OthersInTheSameChainAreNotLost) {
  Block block(8 << 20);
  Arena fast = block.Open();
  Arena slow(block.words.data(), block.size_bytes, [&] {
    for (int i = 0; i < 40000; ++i) EXPECT_TRUE(fast.Propose(Format("other{}", i), "o").ok());
  });
  EXPECT_EQ(slow.Propose("a", "slow").value(), "slow");
  EXPECT_EQ(fast.Read("a").value(), "slow");
  for (int i = 0; i < 40000; ++i) ASSERT_EQ(fast.Read(Format("other{}", i)).value(), "o");
}

// The loser comes second and has its space behind the winner's, where it can be given back.
TEST(Arena, LosersLeaveNoSpaceBehind) {
  Block block(8 << 20);
  const std::string large(100000, 'x');
  std::atomic<bool> second_is_in = false;
  std::atomic<bool> first_is_through = false;
  std::thread second;
  Arena first(block.words.data(), block.size_bytes, [&] {
    second = std::thread([&] {
      Arena arena(block.words.data(), block.size_bytes, [&] {
        second_is_in = true;
        second_is_in.notify_all();
        first_is_through.wait(false);
      });
      EXPECT_TRUE(arena.Propose("offer", std::string(200000, 'y')).value() == large);
    });
    second_is_in.wait(false);
  });
  EXPECT_TRUE(first.Propose("offer", large).value() == large);
  const double with_both = first.Fullness();
  first_is_through = true;
  first_is_through.notify_all();
  second.join();
  EXPECT_LT(first.Fullness(), with_both - 0.02);
  EXPECT_EQ(block.Open().Propose("more", "m").value(), "m");
  EXPECT_TRUE(first.Read("offer").value() == large);
}

TEST(Arena, SpaceThatIsInUseIsNotUsedAgain) {
  Block block;
  Arena arena = block.Open();
  const std::string value(1000, 'v');
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(arena.Propose(Format("k{}", i), value).ok());
  // The damaged arena looks empty.
  const uint64_t empty = Arena::FirstBytes();
  std::memcpy(block.bytes() + 64, &empty, sizeof(empty));
  ASSERT_LT(arena.Fullness(), 0.07);
  bool refused = false;
  for (int i = 0; i < 50; ++i) {
    refused = !arena.Propose(Format("new{}", i), value).ok() || refused;
  }
  EXPECT_TRUE(refused);
  for (int i = 0; i < 50; ++i) {
    const auto read = arena.Read(Format("k{}", i));
    EXPECT_TRUE(!read.ok() || read.value() == value);
  }
}

TEST(Arena, FullIsAnErrorAndWhatStandsStays) {
  Block block;
  Arena arena = block.Open();
  const std::string value(5000, 'v');
  int written = 0;
  Result<std::string> last = std::string();
  while ((last = arena.Propose(Format("k{}", written), value)).ok()) ++written;
  EXPECT_EQ(last.status().code(), ErrorCode::kNoRoom);
  EXPECT_GT(written, 100);
  EXPECT_GT(arena.Fullness(), 0.98);
  EXPECT_LE(arena.Fullness(), 1.0);
  for (int i = 0; i < written; ++i) EXPECT_EQ(arena.Read(Format("k{}", i)).value(), value);
  EXPECT_EQ(arena.Propose("k0", "other").value(), value);
  EXPECT_EQ(arena.Propose("more", std::string(4 << 20, 'x')).status().code(), ErrorCode::kNoRoom);
}

TEST(Arena, AnotherMagicOrSizeIsRefused) {
  Block block;
  EXPECT_FALSE(Arena::Check(block.words.data(), kBytes * 2).ok());
  block.bytes()[0] ^= 1;
  EXPECT_FALSE(Arena::Check(block.words.data(), kBytes).ok());
}

// Any byte may change: a written cell gives its value or an error, and never looks empty; and no
// proposal changes another reader's value without an error.
TEST(Arena, DamageGivesErrorsAndNothingElse) {
  Block sound;
  Arena writer = sound.Open();
  std::map<std::string, std::string> cells;
  for (int i = 0; i < 300; ++i) {
    // A third of them in the regions of communicators, one of which has blocks of its own.
    const std::string key =
        i % 3 == 0 ? Format("c{}.0.cell{}", i % 5, i) : Format("cell{}.{}", i % 5, i);
    cells[key] = std::string(static_cast<size_t>(i % 90), static_cast<char>('a' + i % 26));
    ASSERT_TRUE(writer.Propose(key, cells[key]).ok());
  }
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(writer.Propose(Format("cend.{}.a", i), "x").ok());
    ASSERT_TRUE(writer.Done(Format("cend.{}.", i), 1).ok());
  }
  cells["c1.0.large"] = std::string(20000, 'l');
  ASSERT_TRUE(writer.Propose("c1.0.large", cells["c1.0.large"]).ok());
  const auto used = static_cast<uint64_t>(writer.Fullness() * static_cast<double>(kBytes));
  int errors = 0;
  int values = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    const CounterRandom random(seed, 1);
    Block block;
    std::memcpy(block.bytes(), sound.bytes(), kBytes);
    // From one flipped bit to a stretch of noise or zeros; everywhere, or only in the entries.
    const uint64_t count = seed % 3 == 0 ? 1 : 1 + random.Bits(0) % 400;
    const uint64_t low = seed % 4 == 3 ? Arena::FirstBytes() : 40;
    const uint64_t start = low + random.Bits(1) % (used - low);
    for (uint64_t i = 0; i < count && start + i < kBytes; ++i) {
      char& byte = block.bytes()[start + i];
      if (seed % 3 == 0) byte = static_cast<char>(byte ^ (1 << random.Bits(2) % 8));
      if (seed % 3 == 1) byte = static_cast<char>(random.Bits(10 + i));
      if (seed % 3 == 2) byte = 0;
    }
    Arena arena = block.Open();
    for (int round = 0; round < 2; ++round) {
      for (const auto& [key, value] : cells) {
        const auto read = arena.Read(key);
        ++(read.ok() ? values : errors);
        if (read.ok()) {
          ASSERT_EQ(read.value(), value) << key << " seed " << seed;
        }
        const auto proposed = arena.Propose(key, "another");
        if (proposed.ok()) {
          ASSERT_EQ(proposed.value(), value) << key << " seed " << seed;
        }
      }
      for (int i = 0; i < 20; ++i) {
        const auto fresh = arena.Propose(Format("new.{}", i), "n");
        if (fresh.ok()) {
          ASSERT_EQ(fresh.value(), "n");
        }
        const auto in_region = arena.Propose(Format("cnew.{}.{}", i % 3, i), "n");
        if (in_region.ok()) {
          ASSERT_EQ(in_region.value(), "n");
        }
      }
    }
  }
  EXPECT_GT(errors, 1000);
  EXPECT_GT(values, 100000);
}

}  // namespace
}  // namespace diapason::agree
