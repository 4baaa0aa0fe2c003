#include "base/owner_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/temporary_file.h"
#include "base/text.h"

namespace diapason {
namespace {

class OwnerLockTest : public testing::Test {
 protected:
  // A child that takes the lock, says so, and lives until it is killed.
  pid_t StartOwner() {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      const auto lock = OwnerLock::Take(path_, "it");
      (void)!write(ready[1], lock.ok() ? "y" : "n", 1);
      while (true) pause();
    }
    char answer = 0;
    EXPECT_EQ(read(ready[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    close(ready[0]);
    close(ready[1]);
    return child;
  }
  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  const std::string path_ = folder_ + "/lock";
};

TEST_F(OwnerLockTest, TheSecondIsToldWhoHasItAndDeathReleasesIt) {
  const pid_t owner = StartOwner();
  const auto before = ReadFile(path_, 1000);
  const auto second = OwnerLock::Take(path_, "the folder 'x'");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), ErrorCode::kUnavailable);
  const std::string expected = Format("the folder 'x' is in use by process {} on ", owner);
  EXPECT_TRUE(second.status().message().starts_with(expected)) << second.status().message();
  EXPECT_NE(second.status().message().find(" since 20"), std::string::npos);
  EXPECT_EQ(ReadFile(path_, 1000).value(), before.value()) << "the refused one changed the file";
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  EXPECT_TRUE(FileExists(path_));
  EXPECT_TRUE(OwnerLock::Take(path_, "it").ok());
}

TEST_F(OwnerLockTest, ItsEndRemovesTheFile) {
  {
    const auto lock = OwnerLock::Take(path_, "it");
    ASSERT_TRUE(lock.ok()) << lock.status().message();
    EXPECT_TRUE(FileExists(path_));
  }
  EXPECT_FALSE(FileExists(path_));
}

TEST_F(OwnerLockTest, WhatThisProcessStartsDoesNotInheritIt) {
  pid_t child = 0;
  {
    const auto lock = OwnerLock::Take(path_, "it");
    ASSERT_TRUE(lock.ok());
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    child = fork();
    if (child == 0) {
      dup2(ready[1], 1);
      execlp("sh", "sh", "-c", "echo; exec sleep 100", nullptr);
      _exit(1);
    }
    char answer = 0;
    EXPECT_EQ(read(ready[0], &answer, 1), 1);
    close(ready[0]);
    close(ready[1]);
  }
  EXPECT_TRUE(OwnerLock::Take(path_, "it").ok());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(OwnerLockTest, ALinkIsNotFollowed) {
  ASSERT_EQ(symlink((folder_ + "/other").c_str(), path_.c_str()), 0);
  EXPECT_FALSE(OwnerLock::Take(path_, "it").ok());
  EXPECT_FALSE(FileExists(folder_ + "/other"));
}

}  // namespace
}  // namespace diapason
