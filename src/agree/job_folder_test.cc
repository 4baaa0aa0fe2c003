// The files of a job are removed with it.
#include "agree/job_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "agree/stores.h"
#include "agree/testing.h"

namespace diapason::agree {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;

class JobFolderTest : public testing::Test {
 protected:
  Result<std::unique_ptr<CellStore>> TryOpen(const std::string& job = "job", bool guest = false) {
    StoreOptions options;
    options.job = job;
    options.existing_only = guest;
    return OpenFileStore(options, folder_.path());
  }
  std::unique_ptr<CellStore> Open(const std::string& job = "job") {
    auto store = TryOpen(job);
    if (!store.ok()) ADD_FAILURE() << store.status().message();
    return store.ok() ? std::move(store).value() : nullptr;
  }
  std::string Private() const {
    return folder_.path() + Format("/diapason-{}", static_cast<unsigned>(::geteuid()));
  }
  std::string Job(const std::string& job = "job") const { return Private() + "/" + job; }
  std::vector<std::string> Presences(const std::string& job = "job") const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(Job(job))) {
      if (entry.path().filename().string().starts_with("here-")) found.push_back(entry.path());
    }
    return found;
  }
  std::vector<std::string> Left() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(Private())) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  // The folder of a killed job, with a presence of this age.
  void LeaveRemains(const std::string& job, hours age) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      auto store = TryOpen(job);
      if (store.ok() && store.value()->Propose("a", "old").ok()) store.value().release();
      ::_exit(0);
    }
    ::waitpid(pid, nullptr, 0);
    ASSERT_EQ(Presences(job).size(), 1u);
    for (const std::string& path : Presences(job)) Age(path, age);
  }
  static void Age(const std::string& path, hours age) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - age);
  }
  static Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

  TemporaryFolder folder_{"/dev/shm"};
};

TEST_F(JobFolderTest, TheLastOneOutRemovesTheFolder) {
  auto one = Open();
  auto two = Open();
  EXPECT_EQ(Presences().size(), 2u);
  ASSERT_TRUE(one->Propose("a", "1").ok());
  one->Leave(Soon());
  EXPECT_EQ(Presences().size(), 1u);
  one.reset();
  EXPECT_EQ(two->Read("a").value(), "1");
  EXPECT_EQ(two->Propose("b", "2").value(), "2");
  two->KeepAlive(Soon());
  two.reset();
  EXPECT_TRUE(Left().empty());
  // A process that enters then makes a new folder.
  EXPECT_FALSE(Open()->Read("a").value().has_value());
}

TEST_F(JobFolderTest, AForkedChildNeverRemovesAnything) {
  auto store = Open();
  const pid_t pid = ::fork();
  if (pid == 0) {
    store->Leave(Soon());
    store.reset();
    ::_exit(0);
  }
  ::waitpid(pid, nullptr, 0);
  EXPECT_EQ(Presences().size(), 1u);
  EXPECT_EQ(store->Propose("a", "1").value(), "1");
}

TEST_F(JobFolderTest, KeepAliveRenewsThePresence) {
  const auto store = Open();
  Age(Presences().at(0), hours(30));
  store->KeepAlive(Soon());
  const auto age = fs::file_time_type::clock::now() - fs::last_write_time(Presences().at(0));
  EXPECT_LT(age, hours(1));
  // And brings it back, but not after the process has left.
  fs::remove(Presences().at(0));
  store->KeepAlive(Soon());
  EXPECT_EQ(Presences().size(), 1u);
  const auto other = Open();
  store->Leave(Soon());
  store->KeepAlive(Soon());
  EXPECT_EQ(Presences().size(), 1u);
}

TEST_F(JobFolderTest, RemainsOfKilledJobsGoAfterADay) {
  LeaveRemains("old", hours(25));
  LeaveRemains("young", hours(23));
  LeaveRemains("both", hours(25));
  std::ofstream(Job("both") + "/here-young") << "";
  fs::create_directories(Job("unknown") + "/1");
  fs::permissions(Job("unknown"), fs::perms::owner_all);
  fs::create_directories(Job(".gone-young"));
  fs::permissions(Job(".gone-young"), fs::perms::owner_all);
  const auto store = Open();
  EXPECT_EQ(Left(), (std::vector<std::string>{".gone-young", "both", "job", "unknown", "young"}));
  // Folders with access for other users are not touched, and no link is followed.
  LeaveRemains("open", hours(25));
  fs::permissions(Job("open"), fs::perms::owner_all | fs::perms::group_read);
  fs::create_directory_symlink(Job("both"), Job("link"));
  const auto next = Open();
  EXPECT_TRUE(fs::exists(Job("open") + "/1"));
  EXPECT_TRUE(fs::exists(Job("both") + "/1"));
}

TEST_F(JobFolderTest, WhatCountsAsRemainsAndWhen) {
  const auto store = Open();
  const Descriptor parent(::open(Private().c_str(), O_RDONLY | O_DIRECTORY));
  const auto remains = [&](const std::string& name, hours later) {
    const Descriptor folder(::open(Job(name).c_str(), O_RDONLY | O_DIRECTORY));
    return IsRemains(parent.get(), name, folder.get(),
                     std::time(nullptr) + std::chrono::seconds(later).count());
  };
  EXPECT_FALSE(remains("job", hours(23)));
  EXPECT_TRUE(remains("job", hours(25)));
  // Without any presence.
  fs::create_directories(Job("bare") + "/1");
  EXPECT_FALSE(remains("bare", hours(100)));
  EXPECT_TRUE(remains("bare", hours(200)));
  // A folder that is being removed: but not while a process is in it.
  fs::create_directories(Job(".gone-1"));
  EXPECT_FALSE(remains(".gone-1", hours(0)));
  EXPECT_TRUE(remains(".gone-1", hours(2)));
  std::ofstream(Job(".gone-1") + "/here-1") << "";
  EXPECT_FALSE(remains(".gone-1", hours(2)));
  EXPECT_TRUE(remains(".gone-1", hours(25)));
}

TEST_F(JobFolderTest, OneProcessRemovesABoundedNumber) {
  for (int i = 0; i < 12; ++i) LeaveRemains(Format("old{}", i), hours(0));
  for (int i = 0; i < 12; ++i) Age(Presences(Format("old{}", i)).at(0), hours(25));
  auto store = Open();
  EXPECT_EQ(Left().size(), 12u - 8u + 1u);
  const auto next = Open();
  EXPECT_EQ(Left().size(), 1u);
}

TEST_F(JobFolderTest, APresenceThatAppearsInTimeSavesTheFolder) {
  const auto store = Open();
  ASSERT_TRUE(store->Propose("a", "1").ok());
  const std::string presence = Presences().at(0);
  const std::string aside = folder_.path() + "/aside";
  fs::rename(presence, aside);
  const Descriptor parent(::open(Private().c_str(), O_RDONLY | O_DIRECTORY));
  const Descriptor folder(::open(Job().c_str(), O_RDONLY | O_DIRECTORY));
  bool renamed = false;
  const bool removed = RemoveUnlessUsed(parent.get(), "job", folder.get(), 0, Soon(), [&] {
    renamed = !fs::exists(Job());
    std::ofstream(Private() + "/" + Left().at(0) + "/here-too") << "";
  });
  EXPECT_TRUE(renamed);
  EXPECT_FALSE(removed);
  EXPECT_EQ(store->Read("a").value(), "1");
  EXPECT_EQ(Left(), std::vector<std::string>{"job"});
  // If the name was taken in between, the folder keeps the new name, and the processes inside
  // continue.
  fs::remove(Job() + "/here-too");
  const bool removed_then = RemoveUnlessUsed(parent.get(), "job", folder.get(), 0, Soon(), [&] {
    std::ofstream(Private() + "/" + Left().at(0) + "/here-too") << "";
    fs::create_directory(Job());
  });
  EXPECT_FALSE(removed_then);
  EXPECT_EQ(store->Read("a").value(), "1");
  EXPECT_EQ(store->Propose("b", "2").value(), "2");
  EXPECT_EQ(Left().size(), 2u);
}

TEST_F(JobFolderTest, AProcessThatEntersAFolderBeingRemovedStartsOver) {
  for (const bool emptied : {false, true}) {
    auto last = Open();
    Descriptor parent(::open(Private().c_str(), O_RDONLY | O_DIRECTORY));
    int times = 0;
    const auto entered =
        JobFolder::Enter(std::move(parent), "job", "job", std::chrono::seconds(60), [&] {
          if (times++ > 0) return;
          if (emptied) return last.reset();
          fs::rename(Job(), Job(".gone-1"));
        });
    ASSERT_TRUE(entered.ok()) << entered.status().message();
    EXPECT_EQ(times, 2);
    struct stat ours;
    struct stat named;
    ASSERT_EQ(::fstat(entered.value()->get(), &ours), 0);
    ASSERT_EQ(::stat(Job().c_str(), &named), 0);
    EXPECT_EQ(ours.st_ino, named.st_ino);
    EXPECT_EQ(Presences().size(), 1u);
    if (!emptied) {
      EXPECT_EQ(Presences(".gone-1").size(), 1u) << "nothing of ours stays there";
      last.reset();
      EXPECT_FALSE(fs::exists(Job(".gone-1"))) << "the last one out removes it under its new name";
    }
  }
}

TEST_F(JobFolderTest, AProcessThatEnteredARenamedFolderRemovesIt) {
  Open();
  fs::create_directories(Job() + "/1");
  fs::permissions(Job(), fs::perms::owner_all);
  Descriptor parent(::open(Private().c_str(), O_RDONLY | O_DIRECTORY));
  int times = 0;
  const auto entered =
      JobFolder::Enter(std::move(parent), "job", "job", std::chrono::seconds(60), [&] {
        if (times++ == 0) fs::rename(Job(), Job(".gone-1"));
      });
  ASSERT_TRUE(entered.ok()) << entered.status().message();
  EXPECT_EQ(Left(), std::vector<std::string>{"job"});
}

TEST_F(JobFolderTest, AFolderThatLosesItsNameToAnotherIsNotLeftBehind) {
  const auto store = Open();
  const Descriptor parent(::open(Private().c_str(), O_RDONLY | O_DIRECTORY));
  const Descriptor folder(::open(Job().c_str(), O_RDONLY | O_DIRECTORY));
  // The renamed folder turns out to be another one, which its processes have left, and the name is
  // taken.
  const bool removed = RemoveUnlessUsed(parent.get(), "job", folder.get(), 0, Soon(), [&] {
    const std::string gone = Private() + "/" + Left().at(0);
    fs::rename(gone, folder_.path() + "/aside");
    fs::create_directory(gone);
    fs::permissions(gone, fs::perms::owner_all);
    fs::create_directory(Job());
  });
  EXPECT_FALSE(removed);
  EXPECT_EQ(Left(), std::vector<std::string>{"job"});
}

TEST_F(JobFolderTest, AnotherFolderOfTheSameNameIsNotRemoved) {
  auto old = Open();
  fs::rename(Job(), Job() + "-away");
  const auto store = Open();
  ASSERT_TRUE(store->Propose("a", "1").ok());
  for (const std::string& path : Presences("job")) fs::remove(path);
  old.reset();
  EXPECT_EQ(store->Read("a").value(), "1");
  EXPECT_TRUE(fs::exists(Job()));
}

TEST_F(JobFolderTest, AGuestKeepsAndRemovesNothing) {
  EXPECT_EQ(TryOpen("job", true).status().code(), ErrorCode::kNotFound);
  EXPECT_TRUE(fs::is_empty(folder_.path()));
  auto rank = Open();
  EXPECT_EQ(TryOpen("other", true).status().code(), ErrorCode::kNotFound);
  EXPECT_FALSE(fs::exists(Job("other")));
  LeaveRemains("old", hours(25));
  {
    auto guest = TryOpen("job", true);
    ASSERT_TRUE(guest.ok()) << guest.status().message();
    EXPECT_EQ(Presences().size(), 1u);
    EXPECT_EQ(guest.value()->Propose("a", "guest").value(), "guest");
    guest.value()->KeepAlive(Soon());
    guest.value()->Forget("");
    guest.value()->Leave(Soon());
  }
  EXPECT_TRUE(fs::exists(Job("old")));
  EXPECT_EQ(rank->Read("a").value(), "guest");
  auto guest = TryOpen("job", true);
  rank.reset();
  EXPECT_FALSE(fs::exists(Job()));
  fs::create_directories(Job() + "/1");
  fs::create_directories(Job() + "/2");
  for (const char* part : {"", "/1", "/2"}) fs::permissions(Job() + part, fs::perms::owner_all);
  EXPECT_EQ(TryOpen("job", true).status().code(), ErrorCode::kNotFound) << "no nonce";
}

TEST_F(JobFolderTest, AFolderThatCannotBeUsedIsLeftAlone) {
  LeaveRemains("job", hours(0));
  for (const std::string& path : Presences()) fs::remove(path);
  ASSERT_EQ(::chmod((Job() + "/2").c_str(), 0755), 0);
  EXPECT_FALSE(TryOpen().ok());
  EXPECT_TRUE(fs::exists(Job() + "/1/nonce"));
  EXPECT_TRUE(Presences().empty());
}

// Processes enter while others leave: those inside are never disturbed.
TEST_F(JobFolderTest, ComingAndGoingDisturbsNoneInside) {
  std::vector<pid_t> children;
  for (int c = 0; c < 4; ++c) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (int i = 0; i < 250; ++i) {
        const auto store = TryOpen();
        if (!store.ok()) ::_exit(1);
        const std::string key = Format("k{}.{}", c, i);
        const auto stands = store.value()->Propose(key, key);
        if (!stands.ok() || stands.value() != key) ::_exit(2);
        const auto read = store.value()->Read(key);
        if (!read.ok() || read.value() != key) ::_exit(3);
      }
      ::_exit(0);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_TRUE(Left().empty());
}

}  // namespace
}  // namespace diapason::agree
