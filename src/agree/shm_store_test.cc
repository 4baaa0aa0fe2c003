#include <gtest/gtest.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "agree/private_folder.h"
#include "agree/stores.h"
#include "agree/testing.h"

namespace diapason::agree {
namespace {

namespace fs = std::filesystem;

class ShmStoreTest : public testing::Test {
 protected:
  Result<std::unique_ptr<CellStore>> TryOpen(const std::string& job = "job") {
    StoreOptions options;
    options.job = job;
    return OpenShmStore(options, {folder_.path(), kBytes});
  }
  std::unique_ptr<CellStore> Open(const std::string& job = "job") {
    auto store = TryOpen(job);
    if (!store.ok()) ADD_FAILURE() << store.status().message();
    return store.ok() ? std::move(store).value() : nullptr;
  }
  std::string Private() const {
    return folder_.path() + Format("/diapason-{}", static_cast<unsigned>(::geteuid()));
  }
  std::string ArenaPath(const std::string& job = "job") const { return Private() + "/" + job; }
  // What a killed process leaves: a child opens, proposes, and is killed.
  void LeaveRemains(const std::string& job) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      const auto store = TryOpen(job);
      const bool good = store.ok() && store.value()->Propose("a", "old").ok();
      static_cast<void>(!::write(ready[1], good ? "y" : "n", 1));
      ::pause();
    }
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    ASSERT_EQ(byte, 'y');
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    ::close(ready[0]);
    ::close(ready[1]);
    ASSERT_TRUE(fs::exists(ArenaPath(job)));
  }

  static std::string Inode(const std::string& path) {
    struct stat info;
    if (::stat(path.c_str(), &info) != 0) return "none";
    return Format("{}", info.st_ino);
  }

  static constexpr uint64_t kBytes = uint64_t{2} << 20;
  TemporaryFolder folder_{"/dev/shm"};
};

TEST_F(ShmStoreTest, TheLastOneOutRemovesTheFile) {
  auto one = Open();
  auto two = Open();
  EXPECT_TRUE(fs::exists(ArenaPath()));
  one.reset();
  EXPECT_TRUE(fs::exists(ArenaPath()));
  EXPECT_EQ(two->Propose("a", "1").value(), "1");
  two.reset();
  EXPECT_FALSE(fs::exists(ArenaPath()));
  EXPECT_TRUE(fs::is_empty(Private()));
}

TEST_F(ShmStoreTest, RemainsOfAKilledJobAreReplaced) {
  LeaveRemains("job");
  LeaveRemains("another");
  std::ofstream(ArenaPath(".new-0123")) << "half";
  ASSERT_EQ(::chmod(ArenaPath(".new-0123").c_str(), 0600), 0);
  const auto living = Open("living");
  EXPECT_EQ(living->Propose("a", "1").value(), "1");
  const auto store = Open();
  EXPECT_FALSE(store->Read("a").value().has_value());
  // The others are removed too, except for one in use.
  EXPECT_FALSE(fs::exists(ArenaPath("another")));
  EXPECT_FALSE(fs::exists(ArenaPath(".new-0123")));
  EXPECT_TRUE(fs::exists(ArenaPath("living")));
  EXPECT_EQ(Open("living")->Read("a").value(), "1");
}

TEST_F(ShmStoreTest, RemovingTheNameDoesNoHarmToThoseInside) {
  auto one = Open();
  auto two = Open();
  fs::remove_all(Private());
  EXPECT_EQ(one->Propose("a", "1").value(), "1");
  EXPECT_EQ(two->Propose("a", "2").value(), "1");
  // A process that comes later uses another file, and is not disturbed when the earlier ones leave.
  auto other = Open();
  EXPECT_FALSE(other->Read("a").value().has_value());
  one.reset();
  two.reset();
  EXPECT_TRUE(fs::exists(ArenaPath()));
  EXPECT_EQ(other->Propose("a", "3").value(), "3");
}

TEST_F(ShmStoreTest, AFolderThatOthersCouldUseIsRefused) {
  const std::string elsewhere = folder_.path() + "/elsewhere";
  fs::create_directory(elsewhere);
  ASSERT_EQ(::chmod(elsewhere.c_str(), 0700), 0);
  fs::create_directory_symlink(elsewhere, Private());
  EXPECT_NE(TryOpen().status().message().find("perhaps a link"), std::string::npos);
  fs::remove(Private());

  std::ofstream(Private()) << "x";
  EXPECT_FALSE(TryOpen().ok());
  fs::remove(Private());

  fs::create_directory(Private());
  for (const mode_t mode : {0755, 0770, 0701, 0720}) {
    ASSERT_EQ(::chmod(Private().c_str(), mode), 0);
    EXPECT_NE(TryOpen().status().message().find("others may enter"), std::string::npos);
  }
  ASSERT_EQ(::chmod(Private().c_str(), 0700), 0);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(Private().c_str(), 12345, 12345), 0);
    EXPECT_NE(TryOpen().status().message().find("belongs to user 12345"), std::string::npos);
    ASSERT_EQ(::chown(Private().c_str(), 0, 0), 0);
  }
  EXPECT_TRUE(TryOpen().ok());
}

TEST_F(ShmStoreTest, AFileThatIsNotOursIsRefused) {
  ASSERT_TRUE(Open() != nullptr);  // makes the folder
  const std::string elsewhere = folder_.path() + "/elsewhere";
  std::ofstream(elsewhere) << "precious";
  fs::create_symlink(elsewhere, ArenaPath());
  EXPECT_FALSE(TryOpen().ok());
  fs::remove(ArenaPath());
  fs::create_directory(ArenaPath());
  EXPECT_FALSE(TryOpen().ok());
  fs::remove(ArenaPath());
  ASSERT_EQ(::mkfifo(ArenaPath().c_str(), 0600), 0);
  EXPECT_FALSE(TryOpen().ok());
  fs::remove(ArenaPath());
  std::ofstream(ArenaPath()) << "open to others";
  ASSERT_EQ(::chmod(ArenaPath().c_str(), 0644), 0);
  EXPECT_NE(TryOpen().status().message().find("others may use it"), std::string::npos);
  fs::remove(ArenaPath());
  EXPECT_TRUE(fs::exists(elsewhere));
}

TEST_F(ShmStoreTest, AnotherVersionsFileIsRefusedWhileInUse) {
  ASSERT_TRUE(Open() != nullptr);
  for (const uint64_t size : {uint64_t{0}, uint64_t{100}, kBytes}) {
    std::ofstream(ArenaPath()) << "";
    fs::permissions(ArenaPath(), fs::perms::owner_read | fs::perms::owner_write);
    fs::resize_file(ArenaPath(), size);
    {
      const Descriptor user(::open(ArenaPath().c_str(), O_RDWR | O_CLOEXEC));
      ASSERT_EQ(::flock(user.get(), LOCK_SH), 0);
      EXPECT_NE(TryOpen().status().message().find("another version"), std::string::npos) << size;
    }
    EXPECT_TRUE(TryOpen().ok()) << "and replaced when it is not";
  }
}

TEST_F(ShmStoreTest, AnotherProcessesLockEndsInAnErrorWithinTheLimit) {
  auto store = Open();
  const Descriptor other(::open(ArenaPath().c_str(), O_RDWR | O_CLOEXEC));
  store.reset();
  // An unused file, but named again, and locked for good by a hostile process.
  std::ofstream(ArenaPath()) << "";
  fs::permissions(ArenaPath(), fs::perms::owner_read | fs::perms::owner_write);
  const Descriptor locked(::open(ArenaPath().c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(locked.get(), LOCK_EX), 0);
  StoreOptions options;
  options.job = "job";
  options.limit = std::chrono::milliseconds(30);
  const auto refused = OpenShmStore(options, {folder_.path(), kBytes});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), ErrorCode::kTimeout);
}

TEST_F(ShmStoreTest, FillsUpToTheLastByteAndThenSaysSo) {
  const auto store = Open();
  const std::string value(10000, 'v');
  int written = 0;
  Result<std::string> last = std::string();
  while ((last = store->Propose(Format("k{}", written), value)).ok()) ++written;
  EXPECT_TRUE(NoRoom(last.status())) << last.status().message();
  EXPECT_NE(last.status().message().find("full"), std::string::npos);
  EXPECT_GT(store->Fullness(), 0.95);
  EXPECT_GT(written, 100);
  EXPECT_EQ(store->Read("k0").value(), value);
}

TEST_F(ShmStoreTest, MissingSharedMemoryIsAnError) {
  StoreOptions options;
  options.job = "job";
  EXPECT_FALSE(OpenShmStore(options, {"/nowhere/at/all", kBytes}).ok());
}

TEST_F(ShmStoreTest, AllItsMemoryIsReservedFromTheBeginning) {
  const auto store = Open();
  struct stat info;
  ASSERT_EQ(::stat(ArenaPath().c_str(), &info), 0);
  EXPECT_EQ(static_cast<uint64_t>(info.st_size), kBytes);
  EXPECT_GE(static_cast<uint64_t>(info.st_blocks) * 512, kBytes);
}

// In a child, which may have a small file system of its own for itself.
TEST_F(ShmStoreTest, NoRoomForAllOfItIsAnErrorOfOpening) {
  constexpr int kNotAllowed = 77;
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, "size=1m") != 0) {
      ::_exit(kNotAllowed);
    }
    const auto store = TryOpen();
    const bool nothing_left = fs::is_empty(Private());
    ::_exit(!store.ok() && NoRoom(store.status()) && nothing_left ? 0 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotAllowed) {
    GTEST_SKIP() << "mounting is not allowed here";
  }
  EXPECT_EQ(status, 0);
}

// Beyond `ulimit -f` the system sends SIGXFSZ, whose usual effect is the end of the process.
TEST_F(ShmStoreTest, AFileSizeLimitIsAnErrorAndNoSignal) {
  for (const rlim_t most : {rlim_t{0}, rlim_t{100000}, rlim_t{kBytes - 1}}) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      const rlimit limit{most, most};
      if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(3);
      const auto store = TryOpen();
      ::_exit(!store.ok() && NoRoom(store.status()) ? 0 : 1);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0) << most;
  }
  EXPECT_TRUE(TryOpen().ok());
}

TEST_F(ShmStoreTest, RoomOfEndedCommunicatorsIsUsedAgain) {
  const auto one = Open();
  const auto two = Open();
  const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::hours(1);
  const std::string value(3000, 'v');
  for (int comm = 0; comm < 500; ++comm) {
    for (int cell = 0; cell < 10; ++cell) {
      ASSERT_EQ(one->Propose(Format("c{}.0.e{}", comm, cell), value).value(), value);
    }
    one->Done(Format("c{}.0.", comm), 2, deadline);
    two->Done(Format("c{}.0.", comm), 2, deadline);
  }
  EXPECT_LT(one->Fullness(), 0.3);
}

TEST_F(ShmStoreTest, AGuestOpensOnlyARunningJobAndRemovesNothing) {
  StoreOptions options;
  options.job = "job";
  options.existing_only = true;
  const ShmOptions shm{folder_.path(), kBytes};
  EXPECT_EQ(OpenShmStore(options, shm).status().code(), ErrorCode::kNotFound);
  EXPECT_TRUE(fs::is_empty(folder_.path()));
  LeaveRemains("job");
  EXPECT_EQ(OpenShmStore(options, shm).status().code(), ErrorCode::kNotFound);
  EXPECT_TRUE(fs::exists(ArenaPath()));
  auto rank = Open();
  LeaveRemains("another");
  {
    auto guest = OpenShmStore(options, shm);
    ASSERT_TRUE(guest.ok()) << guest.status().message();
    EXPECT_EQ(guest.value()->Propose("a", "guest").value(), "guest");
    guest.value()->Leave(std::chrono::steady_clock::now());
  }
  EXPECT_TRUE(fs::exists(ArenaPath()));
  EXPECT_TRUE(fs::exists(ArenaPath("another")));
  EXPECT_EQ(rank->Read("a").value(), "guest");
  // A process that is not a rank does not keep the file when the ranks have left.
  auto guest = OpenShmStore(options, shm);
  ASSERT_TRUE(guest.ok());
  rank.reset();
  EXPECT_FALSE(fs::exists(ArenaPath()));
}

// Many processes enter and leave concurrently, some killed; those that run at the same time agree.
TEST_F(ShmStoreTest, EnteringAndLeavingNeverSplitsTheProcesses) {
  for (int round = 0; round < 30; ++round) {
    if (round % 3 == 0) LeaveRemains("job");
    std::vector<pid_t> children;
    for (int c = 0; c < 4; ++c) {
      const pid_t pid = ::fork();
      if (pid == 0) {
        for (int i = 0; i < 60; ++i) {
          const auto store = TryOpen();
          if (!store.ok()) ::_exit(1);
          // While a process is inside, the name belongs to its file and to no other.
          const std::string inode = Inode(ArenaPath());
          const auto stands = store.value()->Propose("inode", inode);
          if (!stands.ok() || stands.value() != inode || Inode(ArenaPath()) != inode) ::_exit(2);
          if (c == 3 && i == 10 + round % 5) ::kill(::getpid(), SIGKILL);
        }
        ::_exit(0);
      }
      children.push_back(pid);
    }
    for (size_t c = 0; c < children.size(); ++c) {
      int status = 0;
      ::waitpid(children[c], &status, 0);
      if (c != 3) {
        EXPECT_EQ(status, 0);
      }
    }
  }
  auto one = Open();
  auto two = Open();
  EXPECT_EQ(one->Propose("me", "1").value(), two->Propose("me", "2").value());
}

}  // namespace
}  // namespace diapason::agree
