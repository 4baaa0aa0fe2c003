#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "agree/private_folder.h"
#include "agree/stores.h"
#include "agree/testing.h"
#include "base/file.h"
#include "base/random.h"

namespace diapason::agree {
namespace {

namespace fs = std::filesystem;

class FileStoreTest : public testing::Test {
 protected:
  Result<std::unique_ptr<CellStore>> TryOpen() {
    StoreOptions options;
    options.job = "job";
    return OpenFileStore(options, folder_.path());
  }
  std::unique_ptr<CellStore> Open() {
    auto store = TryOpen();
    if (!store.ok()) ADD_FAILURE() << store.status().message();
    return store.ok() ? std::move(store).value() : nullptr;
  }
  std::string Private() const {
    return folder_.path() + Format("/diapason-{}", static_cast<unsigned>(::geteuid()));
  }
  std::string Job() const { return Private() + "/job"; }
  std::vector<fs::path> Files(const std::string& part) const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(Job() + "/" + part)) files.push_back(entry);
    std::sort(files.begin(), files.end());
    return files;
  }
  fs::path Named(const std::string& part, const std::string& end) const {
    for (const fs::path& path : Files(part)) {
      if (path.string().ends_with(end)) return path;
    }
    return "";
  }
  TemporaryFolder folder_{"/dev/shm"};  // where flushing costs nothing
};

TEST_F(FileStoreTest, NothingIsLeftBesideTheCells) {
  const auto store = Open();
  ASSERT_TRUE(store->Propose("a", "1").ok());
  ASSERT_TRUE(store->Propose("b", "2").ok());
  EXPECT_EQ(Files("1").size(), 3u);  // and the nonce
  EXPECT_EQ(Files("2").size(), 3u);
  store->Forget("a");
  EXPECT_EQ(Files("1").size(), 2u);
  EXPECT_EQ(Files("2").size(), 2u);
  EXPECT_EQ(store->Read("b").value(), "2");
  store->Forget("");
  EXPECT_TRUE(Files("1").empty());
  EXPECT_TRUE(Files("2").empty());
}

TEST_F(FileStoreTest, AnEmptiedStoreIsAnError) {
  const auto store = Open();
  ASSERT_TRUE(store->Propose("a", "1").ok());
  fs::remove_all(Private());
  EXPECT_EQ(store->Read("a").status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(store->Read("b").status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(store->Propose("c", "1").status().code(), ErrorCode::kUnavailable);
  // Also if another process has created it again.
  const auto other = Open();
  EXPECT_FALSE(store->Read("a").ok());
  EXPECT_FALSE(store->Propose("c", "1").ok());
  EXPECT_FALSE(other->Read("a").value().has_value());
  EXPECT_EQ(other->Propose("c", "2").value(), "2");
}

TEST_F(FileStoreTest, EmptiedInPlaceAndMadeAnewIsAnErrorToo) {
  const auto store = Open();
  ASSERT_TRUE(store->Propose("a", "1").ok());
  for (const char* part : {"1", "2"}) {
    for (const fs::path& path : Files(part)) fs::remove(path);
  }
  const auto other = Open();
  EXPECT_EQ(other->Propose("a", "2").value(), "2");
  EXPECT_FALSE(store->Read("a").ok());
  EXPECT_FALSE(store->Propose("b", "1").ok());
}

// `rm -r` removes file after file, one folder after the other. Whenever a rank looks, it must get
// the old value or an error.
TEST_F(FileStoreTest, BeingEmptiedIsNoticedAtEveryStep) {
  for (const bool reverse : {false, true}) {
    for (uint64_t seed = 0; seed < 12; ++seed) {
      for (size_t steps = 0; steps < 14; ++steps) {
        fs::remove_all(Private());
        const auto store = Open();
        for (int i = 0; i < 5; ++i) ASSERT_EQ(store->Propose(Format("k{}", i), "v").value(), "v");
        size_t done = 0;
        for (const char* part : {reverse ? "2" : "1", reverse ? "1" : "2"}) {
          std::vector<fs::path> files = Files(part);
          std::sort(files.begin(), files.end(), [&](const fs::path& a, const fs::path& b) {
            const CounterRandom random(seed, 3);
            return random.Bits(fs::hash_value(a.filename())) <
                   random.Bits(fs::hash_value(b.filename()));
          });
          for (const fs::path& path : files) {
            if (done++ < steps) fs::remove(path);
          }
          if (done <= steps) fs::remove(Job() + "/" + part);
          ++done;
        }
        for (int i = 0; i < 5; ++i) {
          const auto proposed = store->Propose(Format("k{}", i), "other");
          if (proposed.ok()) {
            EXPECT_EQ(proposed.value(), "v");
          }
          const auto read = store->Read(Format("k{}", i));
          if (read.ok()) {
            EXPECT_EQ(read.value(), "v");
          }
        }
      }
    }
  }
}

TEST_F(FileStoreTest, RenamingTheFolderAwayDoesNoHarmToThoseInside) {
  const auto one = Open();
  const auto two = Open();
  fs::rename(Private(), Private() + "-old");
  EXPECT_EQ(one->Propose("a", "1").value(), "1");
  EXPECT_EQ(two->Propose("a", "2").value(), "1");
  const auto late = Open();
  EXPECT_FALSE(late->Read("a").value().has_value());
  EXPECT_EQ(one->Propose("b", "1").value(), "1");
}

TEST_F(FileStoreTest, ACellInOneFolderOnlyIsFinishedByTheNext) {
  const auto store = Open();
  ASSERT_TRUE(store->Propose("a", "1").ok());
  // As if its proposer had been killed between the two.
  ASSERT_TRUE(fs::remove(Named("2", ".a")));
  EXPECT_EQ(store->Read("a").value(), "1");
  EXPECT_FALSE(Named("2", ".a").empty());
  // No tool leaves it the other way round.
  ASSERT_TRUE(fs::remove(Named("1", ".a")));
  EXPECT_FALSE(store->Read("a").ok());
  EXPECT_FALSE(store->Propose("a", "2").ok());
}

TEST_F(FileStoreTest, ACellThatNoRankHasWrittenIsAnError) {
  const auto store = Open();
  ASSERT_TRUE(store->Propose("a", "some value").ok());
  const fs::path cell = Named("1", ".a");  // both names are one file
  const std::string good = ReadFile(cell.string(), 1000).value();
  const auto write = [&](const std::string& text) {
    std::ofstream(cell, std::ios::trunc | std::ios::binary) << text;
  };
  for (size_t cut = 0; cut < good.size(); ++cut) {
    write(good.substr(0, cut));
    EXPECT_EQ(store->Read("a").status().code(), ErrorCode::kUnavailable) << cut;
    EXPECT_FALSE(store->Propose("a", "x").ok()) << cut;
  }
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 4);
    write(bad);
    EXPECT_FALSE(store->Read("a").ok()) << i;
  }
  write(good + "x");
  EXPECT_FALSE(store->Read("a").ok());
  fs::resize_file(cell, kLongestValue * 2);
  EXPECT_FALSE(store->Read("a").ok());
  write(good);
  EXPECT_EQ(store->Read("a").value(), "some value");
  ASSERT_EQ(::chmod(cell.c_str(), 0644), 0);
  EXPECT_FALSE(store->Read("a").ok());
  fs::remove(cell);
  fs::create_symlink("/etc/hostname", cell);
  EXPECT_FALSE(store->Read("a").ok());
  EXPECT_FALSE(store->Propose("a", "x").ok());
}

TEST_F(FileStoreTest, AReplacedNonceIsAnError) {
  const auto store = Open();
  ASSERT_TRUE(store->Propose("a", "1").ok());
  const auto other = Open();
  for (const char* part : {"1", "2"}) fs::remove(Job() + "/" + part + "/nonce");
  const auto third = Open();
  EXPECT_FALSE(store->Read("b").ok());
  EXPECT_FALSE(store->Propose("b", "1").ok());
  EXPECT_FALSE(other->Propose("b", "1").ok());
  EXPECT_EQ(third->Propose("b", "3").value(), "3");
  EXPECT_FALSE(third->Read("a").value().has_value());
}

TEST_F(FileStoreTest, RemainsOfKilledProposersGoAfterAWhile) {
  const auto store = Open();
  const std::string old = Job() + "/1/.new-old";
  const std::string young = Job() + "/1/.new-young";
  std::ofstream(old) << "x";
  std::ofstream(young) << "x";
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(2));
  const auto next = Open();
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young));
}

// Beyond `ulimit -f` the system sends SIGXFSZ, whose usual effect is the end of the process.
TEST_F(FileStoreTest, AFileSizeLimitIsAnErrorAndNoSignal) {
  const auto keeps_the_folder = Open();
  const pid_t pid = ::fork();
  if (pid == 0) {
    const auto store = TryOpen();
    const rlimit limit{1000, 1000};
    if (!store.ok() || ::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(3);
    const auto refused = store.value()->Propose("a", std::string(5000, 'x'));
    const auto fits = store.value()->Propose("a", "small");
    ::_exit(NoRoom(refused.status()) && fits.ok() && fits.value() == "small" ? 0 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Files("1").size(), 2u);
  EXPECT_EQ(keeps_the_folder->Read("a").value(), "small");
}

// A full file system, in a child that may have a small one for itself.
TEST_F(FileStoreTest, AFullFileSystemIsNoRoomAndNotTheEnd) {
  constexpr int kNotAllowed = 77;
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, "size=1m") != 0) {
      ::_exit(kNotAllowed);
    }
    auto opened = TryOpen();
    if (!opened.ok()) ::_exit(2);
    const auto store = std::move(opened).value();
    const std::string value(100000, 'x');
    int written = 0;
    Result<std::string> last = std::string();
    while (written < 100 && (last = store->Propose(Format("k{}", written), value)).ok()) ++written;
    if (!NoRoom(last.status())) ::_exit(3);
    store->Forget("k0");
    const auto again = store->Propose(Format("k{}", written), value);
    if (!again.ok() || again.value() != value) ::_exit(4);
    ::_exit(store->Read("k1").value() == value ? 0 : 5);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotAllowed) {
    GTEST_SKIP() << "mounting is not allowed here";
  }
  EXPECT_EQ(status, 0);
}

TEST_F(FileStoreTest, FoldersThatOthersCouldUseAreRefused) {
  const auto keeps_the_folder = Open();
  for (const std::string& path : {Private(), Job(), Job() + "/1", Job() + "/2"}) {
    ASSERT_TRUE(Open() != nullptr);
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
    EXPECT_FALSE(TryOpen().ok()) << path;
    ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
    const std::string aside = folder_.path() + "/aside";
    fs::rename(path, aside);
    fs::create_directory_symlink(aside, path);
    EXPECT_FALSE(TryOpen().ok()) << path;
    fs::remove(path);
    fs::rename(aside, path);
  }
  StoreOptions options;
  options.job = "job";
  EXPECT_FALSE(OpenFileStore(options, "relative").ok());
  EXPECT_FALSE(OpenFileStore(options, "").ok());
  EXPECT_FALSE(OpenFileStore(options, folder_.path() + "/missing").ok());
}

}  // namespace
}  // namespace diapason::agree
