// The blocks of ended communicators are used again.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "agree/arena.h"
#include "base/random.h"
#include "base/text.h"

namespace diapason::agree {
namespace {

constexpr uint64_t kMebibyte = 1 << 20;

// Memory that forked children share.
class Shared {
 public:
  explicit Shared(uint64_t size = kMebibyte) : size_(size) {
    memory_ = static_cast<char*>(
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    Arena::Prepare(memory_, size, 4711);
  }
  ~Shared() { ::munmap(memory_, size_); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  Arena Open() { return Arena(memory_, size_); }
  char* bytes() { return memory_; }

 private:
  char* memory_;
  uint64_t size_;
};

std::string Key(int comm, int cell) { return Format("c{:x}.0.allreduce.{}", comm, cell); }
std::string Prefix(int comm) { return Format("c{:x}.0.", comm); }

TEST(ArenaRegion, FiveThousandCommunicatorsOneAfterTheOther) {
  Shared shared;
  Arena one = shared.Open();
  Arena two = shared.Open();
  ASSERT_EQ(one.Propose("jx", "stays").value(), "stays");
  const std::string value(500, 'v');
  for (int comm = 0; comm < 5000; ++comm) {
    for (int cell = 0; cell < 60; ++cell) {  // more than one block holds
      ASSERT_EQ(one.Propose(Key(comm, cell), value + Format("{}", comm)).value(),
                value + Format("{}", comm));
      ASSERT_EQ(two.Propose(Key(comm, cell), "other").value(), value + Format("{}", comm));
    }
    ASSERT_TRUE(one.Done(Prefix(comm), 2).ok());
    ASSERT_EQ(two.Read(Key(comm, 0)).value(), value + Format("{}", comm));
    ASSERT_TRUE(two.Done(Prefix(comm), 2).ok());
  }
  EXPECT_LT(one.Fullness(), 0.8);  // the names of the regions
  EXPECT_EQ(two.Read("jx").value(), "stays");
}

TEST(ArenaRegion, LargeValuesGoWithTheirCommunicator) {
  Shared shared;
  Arena arena = shared.Open();
  ASSERT_TRUE(arena.Propose("j", "x").ok());
  const std::string large(50000, 'l');
  for (int comm = 0; comm < 200; ++comm) {
    ASSERT_EQ(arena.Propose(Key(comm, 0), "small").value(), "small");
    ASSERT_EQ(arena.Propose(Key(comm, 1), large).value(), large) << comm;
    ASSERT_EQ(arena.Read(Key(comm, 1)).value(), large);
    ASSERT_TRUE(arena.Done(Prefix(comm), 1).ok());
  }
  EXPECT_LT(arena.Fullness(), 0.2);
}

TEST(ArenaRegion, WhatHasEndedIsAnErrorAndNeverAnEmptyCell) {
  Shared shared;
  Arena arena = shared.Open();
  ASSERT_EQ(arena.Propose(Key(1, 0), "v").value(), "v");
  ASSERT_TRUE(arena.Done(Prefix(1), 1).ok());
  EXPECT_FALSE(arena.Read(Key(1, 0)).ok());
  EXPECT_EQ(arena.Propose(Key(1, 0), "w").status().code(), ErrorCode::kUnavailable);
  // Also where no cell was ever written, and for another generation nothing has changed.
  ASSERT_TRUE(arena.Done(Prefix(2), 1).ok());
  EXPECT_FALSE(arena.Propose(Key(2, 0), "w").ok());
  EXPECT_EQ(arena.Propose("c1.1.x", "w").value(), "w");
}

TEST(ArenaRegion, StaysUntilAllMembersAreDone) {
  Shared shared;
  Arena arena = shared.Open();
  const double empty = arena.Fullness();
  ASSERT_EQ(arena.Propose(Key(1, 0), "v").value(), "v");
  ASSERT_EQ(arena.Propose(Key(2, 0), "w").value(), "w");
  for (int member = 1; member < 8; ++member) {
    ASSERT_TRUE(arena.Done(Prefix(1), 8).ok());
    ASSERT_EQ(arena.Read(Key(1, 0)).value(), "v");
  }
  const double with_both = arena.Fullness();
  EXPECT_GT(with_both, empty);
  ASSERT_TRUE(arena.Done(Prefix(1), 8).ok());
  EXPECT_LT(arena.Fullness(), with_both);
  EXPECT_EQ(arena.Read(Key(2, 0)).value(), "w");
}

TEST(ArenaRegion, OtherPrefixesHaveNoRegion) {
  Shared shared;
  Arena arena = shared.Open();
  for (const char* key : {"j1.0.5", "p1.0.x", "token.1.end", "c1", "c1.0", "d1.0.x"}) {
    ASSERT_EQ(arena.Propose(key, "v").value(), "v");
  }
  for (const char* prefix : {"", "j1.0.", "p1.0.", "token.1.", "c1", "c1.0", "c1.0.x", "c"}) {
    ASSERT_TRUE(arena.Done(prefix, 1).ok());
  }
  for (const char* key : {"j1.0.5", "p1.0.x", "token.1.end", "c1", "c1.0", "d1.0.x"}) {
    EXPECT_EQ(arena.Read(key).value(), "v");
  }
}

TEST(ArenaRegion, AFullArenaIsReportedUntilOthersEnd) {
  Shared shared;
  Arena arena = shared.Open();
  int comms = 0;
  Result<std::string> last = std::string();
  while ((last = arena.Propose(Key(comms, 0), "v")).ok()) ++comms;
  EXPECT_EQ(last.status().code(), ErrorCode::kNoRoom);
  EXPECT_GT(comms, 40);
  EXPECT_EQ(arena.Fullness(), 1);
  for (int comm = 0; comm < comms; ++comm) EXPECT_EQ(arena.Read(Key(comm, 0)).value(), "v");
  ASSERT_TRUE(arena.Done(Prefix(0), 1).ok());
  EXPECT_EQ(arena.Propose(Key(comms, 0), "v").value(), "v");
}

// A free block that holds anything is one that is in use.
TEST(ArenaRegion, AFreeBlockThatIsNotEmptyIsAnError) {
  for (const uint64_t at : {uint64_t{0}, uint64_t{8}, uint64_t{5000}, Arena::kBlock - 1}) {
    Shared shared;
    Arena arena = shared.Open();
    ASSERT_TRUE(arena.Propose(Key(1, 0), "v").ok());
    ASSERT_TRUE(arena.Propose(Key(2, 0), "v").ok());
    ASSERT_TRUE(arena.Done(Prefix(1), 1).ok());
    // Its name has the first block, and its cells the second.
    shared.bytes()[Arena::FirstBytes() + Arena::kBlock + at] ^= 1;
    EXPECT_EQ(arena.Propose(Key(3, 0), "v").status().code(), ErrorCode::kUnavailable) << at;
  }
}

// Members of many communicators in several processes: whatever is reused, all members of a
// communicator read the same values.
void RunMembers(Arena arena, int comms, int members, int me, bool* good) {
  const CounterRandom random(static_cast<uint64_t>(me), 5);
  for (int comm = 0; comm < comms && *good; ++comm) {
    for (int cell = 0; cell < 12; ++cell) {
      const auto size = random.Bits(static_cast<uint64_t>(comm * 100 + cell)) % 3000;
      const std::string mine = Format("{} {} {} ", comm, cell, me) + std::string(size, 'x');
      auto stands = arena.Propose(Key(comm, cell), mine);
      // The ranks behind read only existing cells, and will free space.
      while (!stands.ok() && stands.status().code() == ErrorCode::kNoRoom) {
        std::this_thread::yield();
        stands = arena.Propose(Key(comm, cell), mine);
      }
      const auto again = arena.Read(Key(comm, cell));
      *good = *good && stands.ok() && again.ok() && again.value() == stands.value() &&
              stands.value().starts_with(Format("{} {} ", comm, cell));
    }
    *good = *good && arena.Done(Prefix(comm), static_cast<uint32_t>(members)).ok();
  }
}

TEST(ArenaRegion, ThreadsThatEndRegionsAtOnceNeverSeeEachOthersCells) {
  Shared shared(4 * kMebibyte);
  constexpr int kMembers = 4;
  bool good[kMembers] = {true, true, true, true};
  std::vector<std::thread> threads;
  for (int me = 0; me < kMembers; ++me) {
    threads.emplace_back([&, me] { RunMembers(shared.Open(), 400, kMembers, me, &good[me]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const bool fine : good) EXPECT_TRUE(fine);
}

TEST(ArenaRegion, ProcessesThatEndRegionsAtOnceNeverSeeEachOthersCells) {
  Shared shared(4 * kMebibyte);
  constexpr int kMembers = 4;
  std::vector<pid_t> children;
  for (int me = 0; me < kMembers; ++me) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      bool good = true;
      RunMembers(shared.Open(), 1000, kMembers, me, &good);
      ::_exit(good ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_LT(shared.Open().Fullness(), 0.5);
}

// Some processes are killed at random points, also while they free blocks. The others continue, and
// only blocks held by the killed processes are lost.
TEST(ArenaRegion, AProcessKilledAnywhereLosesBlocksAndNothingElse) {
  Shared shared(4 * kMebibyte);
  Arena arena = shared.Open();
  ASSERT_EQ(arena.Propose("cfirst.0.a", "stays").value(), "stays");
  for (int round = 0; round < 40; ++round) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      Arena own = shared.Open();
      for (int comm = 1000 * (round + 1);; ++comm) {
        for (int cell = 0; cell < 8; ++cell) {
          static_cast<void>(own.Propose(Key(comm, cell), std::string(2000, 'd')).ok());
        }
        static_cast<void>(own.Done(Prefix(comm), 1).ok());
        if (comm % 1000 == 999) ::pause();
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200 + round * 37));
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    for (int cell = 0; cell < 20; ++cell) {
      const std::string key = Format("clive.{}.{}", round, cell);
      ASSERT_EQ(arena.Propose(key, key).value(), key);
    }
    for (int cell = 0; cell < 20; ++cell) {
      const std::string key = Format("clive.{}.{}", round, cell);
      ASSERT_EQ(arena.Read(key).value(), key);
    }
    ASSERT_TRUE(arena.Done(Format("clive.{}.", round), 1).ok());
  }
  EXPECT_EQ(arena.Read("cfirst.0.a").value(), "stays");
}

}  // namespace
}  // namespace diapason::agree
