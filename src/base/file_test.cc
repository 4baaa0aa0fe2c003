#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/descriptor.h"
#include "base/host_name.h"
#include "base/temporary_file.h"

namespace diapason {
namespace {

class FileTest : public ::testing::Test {
 protected:
  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
};

TEST_F(FileTest, WritesAndReadsBack) {
  const std::string path = folder_ + "/a.txt";
  ASSERT_TRUE(WriteFileAtomically(path, "one").ok());
  ASSERT_TRUE(WriteFileAtomically(path, "two").ok());
  EXPECT_EQ(ReadFile(path, 100).value(), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1)
      << "no temporary file is left behind";
}

TEST_F(FileTest, ALinkStaysAndWhatItPointsToIsReplaced) {
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/v3.conf", "old").ok());
  std::filesystem::create_symlink("v3.conf", folder_ + "/link");
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/link", "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ + "/link"));
  EXPECT_EQ(ReadFile(folder_ + "/v3.conf", 100).value(), "new");
}

TEST_F(FileTest, WhatIsNoFileIsWrittenIntoAndNotReplaced) {
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(WriteFileAtomically(pipe, "x").ok()) << "no reader";
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  ASSERT_TRUE(WriteFileAtomically(pipe, "through").ok());
  char buffer[16] = "";
  EXPECT_EQ(::read(reader, buffer, sizeof(buffer)), 7);
  ::close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  std::filesystem::create_symlink("/dev/full", folder_ + "/full");
  EXPECT_FALSE(WriteFileAtomically(folder_ + "/full", "x").ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  EXPECT_FALSE(WriteFileAtomically(folder_, "x").ok());
}

TEST_F(FileTest, EveryKindOfNonFileIsAnErrorThatSaysWhat) {
  EXPECT_EQ(ReadFile(folder_ + "/missing", 100).status().code(), ErrorCode::kNotFound);
  EXPECT_NE(ReadFile(folder_, 100).status().message().find("directory"), std::string::npos);
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(ReadFile(pipe, 100).status().message().find("regular file"), std::string::npos);
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/large", std::string(101, 'x')).ok());
  EXPECT_NE(ReadFile(folder_ + "/large", 100).status().message().find("larger"), std::string::npos);
  EXPECT_TRUE(ReadFile(folder_ + "/large", 101).ok());
  EXPECT_FALSE(WriteFileAtomically(folder_ + "/no/such/folder", "x").ok());
}

TEST(Descriptor, IsClosedByItsLastOwnerAndByExec) {
  Result<Pipe> made = MakePipe(O_NONBLOCK);
  ASSERT_TRUE(made.ok());
  Pipe pipe = std::move(made).value();
  const int read = pipe.read.get();
  EXPECT_EQ(::fcntl(read, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  EXPECT_EQ(::fcntl(read, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
  Descriptor moved(std::move(pipe.read));
  EXPECT_FALSE(pipe.read.open());
  EXPECT_EQ(moved.get(), read);
  moved = Descriptor();
  EXPECT_EQ(::fcntl(read, F_GETFD), -1);
  const int write = pipe.write.Release();
  pipe.write.Close();
  EXPECT_EQ(::close(write), 0);
}

TEST(HostName, IsTheKernels) {
  char name[256] = "";
  ASSERT_EQ(::gethostname(name, sizeof(name) - 1), 0);
  EXPECT_EQ(HostName(), name);
}

}  // namespace
}  // namespace diapason
