#include "rendezvous/secret.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include "base/temporary_file.h"

namespace diapason::rendezvous {
namespace {

constexpr uid_t kAnotherUser = 65534;  // uid of nobody
constexpr const char* kSecretText = "0123456789abcdef";

Result<std::string> ReadWith(const std::map<std::string, std::string>& variables) {
  return ReadSecret(MapEnvironment(variables));
}

// A temporary folder that is removed afterwards.
class SecretTest : public testing::Test {
 protected:
  void Write(const std::string& content, mode_t mode = 0600) {
    FILE* const file = std::fopen(path_.c_str(), "w");
    ASSERT_NE(file, nullptr);
    ASSERT_EQ(std::fwrite(content.data(), 1, content.size(), file), content.size());
    ASSERT_EQ(std::fclose(file), 0);
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
  }
  Result<std::string> Read() const { return ReadWith({{"DIAPASON_SECRET_FILE", path_}}); }
  void ExpectRefused(const std::string& why) const {
    const Result<std::string> read = Read();
    ASSERT_FALSE(read.ok()) << why;
    EXPECT_NE(read.status().message().find(why), std::string::npos) << read.status().message();
    EXPECT_NE(read.status().message().find(path_), std::string::npos) << read.status().message();
    EXPECT_EQ(read.status().message().find(kSecretText), std::string::npos);
  }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  const std::string path_ = folder_ + "/secret";
};

TEST_F(SecretTest, IsWhatTheFileHolds) {
  Write(std::string(kSecretText) + "\n");
  EXPECT_EQ(Read().value(), kSecretText);
  Write(kSecretText, 0400);
  EXPECT_EQ(Read().value(), kSecretText);
  Write(std::string(4096, 'x'));
  EXPECT_EQ(Read().value().size(), 4096U);
  // The file wins over the variable, and neither is needed.
  const Result<std::string> both =
      ReadWith({{"DIAPASON_SECRET_FILE", path_}, {"DIAPASON_SECRET", "another secret of ours"}});
  EXPECT_EQ(both.value().size(), 4096U);
  EXPECT_EQ(ReadWith({{"DIAPASON_SECRET", "another secret of ours"}}).value(),
            "another secret of ours");
  EXPECT_EQ(ReadWith({}).value(), "");
  EXPECT_EQ(ReadWith({{"DIAPASON_SECRET_FILE", ""}}).value(), "");
}

TEST_F(SecretTest, AFileThatOthersCanUseIsRefused) {
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0644}) {
    Write(kSecretText, mode);
    ExpectRefused("can be used by other users");
  }
}

TEST_F(SecretTest, WhatIsNoSecretIsRefused) {
  ExpectRefused("cannot be read");
  Write("");
  ExpectRefused("is empty");
  Write(" \n\t\n");
  ExpectRefused("is empty");
  Write("0123456789abcde\n");
  ExpectRefused("too short");
  Write(std::string(4097, 'x'));
  ExpectRefused("longer than 4 KiB");
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  ASSERT_EQ(::mkdir(path_.c_str(), 0700), 0);
  ExpectRefused("no regular file");
  ASSERT_EQ(::rmdir(path_.c_str()), 0);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  ExpectRefused("no regular file");
  EXPECT_FALSE(ReadWith({{"DIAPASON_SECRET", "short"}}).ok());
}

TEST_F(SecretTest, AnotherUsersFileIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a file of another user";
  Write(kSecretText);
  ASSERT_EQ(::chown(path_.c_str(), kAnotherUser, kAnotherUser), 0);
  ExpectRefused("belongs to another user");
}

TEST_F(SecretTest, AnotherUserCannotReadIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  Write(kSecretText);
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);  // so that it is the file that is closed
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::setgid(kAnotherUser) != 0 || ::setuid(kAnotherUser) != 0) ::_exit(3);
    const Result<std::string> read = Read();
    ::_exit(read.ok() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(DrawSecret, IsAnotherEveryTime) {
  const std::string one = DrawSecret().value();
  EXPECT_EQ(one.size(), 43U);
  EXPECT_NE(one, DrawSecret().value());
  EXPECT_EQ(ReadWith({{"DIAPASON_SECRET", one}}).value(), one);
}

}  // namespace
}  // namespace diapason::rendezvous
