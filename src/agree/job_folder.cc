#include "agree/job_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <limits>

#include "agree/folder_names.h"
#include "base/file.h"

namespace diapason::agree {
namespace {

using std::chrono::steady_clock;

constexpr char kPresence[] = "here-";
constexpr char kGone[] = ".gone-";
constexpr int kMostEntries = 20;     // attempts to enter a folder that other processes remove
constexpr int kMostSiblings = 256;   // names examined
constexpr int kMostRemoved = 8;      // folders that one process removes when it enters
constexpr int kMostNames = 1 << 20;  // in one folder
// How long a folder that is being removed is left to its remover.
constexpr time_t kHourSeconds = 3600;
constexpr time_t kDaySeconds = 24 * kHourSeconds;  // how long a presence counts without renewal
// For a folder without a presence: from an older version, or a process killed at once.
constexpr time_t kWeekSeconds = 7 * kDaySeconds;

constexpr time_t kEver = std::numeric_limits<time_t>::min();

bool Begins(const std::string& name, std::string_view start) { return name.starts_with(start); }

struct Presences {
  bool any = false;
  bool since = false;  // a presence renewed at `since` or later
};
Presences LookForPresences(int folder, time_t since) {
  Presences found;
  ForEachName(folder, kMostNames, [&](const std::string& name) {
    if (!Begins(name, kPresence)) return true;
    struct stat info;
    if (::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return true;
    found.any = true;
    found.since = info.st_mtime >= since;
    return !found.since;
  });
  return found;
}

time_t Changed(int folder, const char* name) {
  struct stat info;
  if (::fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return kEver;
  return std::max(info.st_mtime, info.st_ctime);
}

// Removes the nonces first: without them no rank trusts the rest, whatever part is left.
void Empty(int folder, Deadline deadline) {
  const char* const parts[] = {"2", "1"};
  Descriptor open[2];
  for (size_t i = 0; i < 2; ++i) {
    open[i] =
        Descriptor(::openat(folder, parts[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (open[i].get() >= 0) ::unlinkat(open[i].get(), "nonce", 0);
  }
  for (size_t i = 0; i < 2; ++i) {
    const Descriptor& cells = open[i];
    if (cells.get() < 0) continue;
    ForEachName(cells.get(), kMostNames, [&](const std::string& name) {
      ::unlinkat(cells.get(), name.c_str(), 0);
      return steady_clock::now() < deadline;
    });
    ::unlinkat(folder, parts[i], AT_REMOVEDIR);
  }
  ForEachName(folder, kMostNames, [&](const std::string& name) {
    if (Begins(name, kPresence)) ::unlinkat(folder, name.c_str(), 0);
    return steady_clock::now() < deadline;
  });
}

// The name of an open folder in `parent`: the job's, or the one it has while it is removed; "" if
// it has neither.
std::string NameOf(int parent, const std::string& job, int folder) {
  struct stat info;
  if (::fstat(folder, &info) != 0) return "";
  if (StillNamed(parent, job, info)) return job;
  std::string found;
  ForEachName(parent, kMostNames, [&](const std::string& name) {
    if (Begins(name, kGone) && StillNamed(parent, name, info)) found = name;
    return found.empty();
  });
  return found;
}

// Removes a folder in which no process is present, whichever name it has.
void RemoveIfAbandoned(int parent, const std::string& job, int folder, Deadline deadline) {
  if (steady_clock::now() >= deadline || LookForPresences(folder, kEver).any) return;
  const std::string name = NameOf(parent, job, folder);
  if (!name.empty()) RemoveUnlessUsed(parent, name, folder, kEver, deadline);
}

// Gives a folder that this process renamed its name back, if no other folder has that name by now.
// A process that leaves the folder while it is renamed may not find it, so the folder is removed
// here if it is abandoned.
void PutBack(int parent, const std::string& gone, const std::string& name, Deadline deadline) {
  const Result<Descriptor> folder = OpenExistingFolder(parent, gone, gone);
  ::renameat2(parent, gone.c_str(), parent, name.c_str(), RENAME_NOREPLACE);
  if (folder.ok()) RemoveIfAbandoned(parent, name, folder.value().get(), deadline);
}

}  // namespace

bool RemoveUnlessUsed(int parent, const std::string& name, int folder, time_t since,
                      Deadline deadline, const std::function<void()>& between) {
  struct stat info;
  if (::fstat(folder, &info) != 0 || !StillNamed(parent, name, info)) return false;
  const std::string gone = kGone + RandomName();
  if (::renameat(parent, name.c_str(), parent, gone.c_str()) != 0) return false;
  if (between) between();
  // Another process may have entered, or the folder may be another one, before the name was gone.
  if (!StillNamed(parent, gone, info) || LookForPresences(folder, since).since) {
    PutBack(parent, gone, name, deadline);
    return false;
  }
  Empty(folder, deadline);
  ::unlinkat(parent, gone.c_str(), AT_REMOVEDIR);
  return true;
}

bool IsRemains(int parent, const std::string& name, int folder, time_t now) {
  const Presences found = LookForPresences(folder, now - kDaySeconds);
  if (found.since) return false;
  if (Begins(name, kGone)) return Changed(parent, name.c_str()) < now - kHourSeconds;
  if (found.any) return true;
  const time_t changed =
      std::max({Changed(parent, name.c_str()), Changed(folder, "1"), Changed(folder, "2")});
  return changed < now - kWeekSeconds;
}

JobFolder::JobFolder(Descriptor parent, std::string name, Descriptor folder,
                     std::chrono::milliseconds limit)
    : limit_(limit),
      parent_(std::move(parent)),
      name_(std::move(name)),
      folder_(std::move(folder)) {}

JobFolder::~JobFolder() {
  try {
    Leave(steady_clock::now() + limit_);
  } catch (...) {  // no memory: its presence grows old, and another process removes it
  }
}

int JobFolder::MakePresence() {
  const std::string name = kPresence + RandomName();
  const Descriptor file(::openat(folder_.get(), name.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.get() < 0) return errno;
  presence_ = name;
  return 0;
}

Result<std::unique_ptr<JobFolder>> JobFolder::Enter(Descriptor parent, const std::string& name,
                                                    const std::string& shown,
                                                    std::chrono::milliseconds limit,
                                                    const std::function<void()>& between) {
  for (int attempt = 0; attempt < kMostEntries; ++attempt) {
    ASSIGN_OR_RETURN(Descriptor folder, OpenPrivateFolder(parent.get(), name, shown));
    Descriptor again(::fcntl(parent.get(), F_DUPFD_CLOEXEC, 0));
    std::unique_ptr<JobFolder> job(new JobFolder(std::move(again), name, std::move(folder), limit));
    if (between) between();
    const int error = job->MakePresence();
    if (error == ENOENT || error == ESTALE) continue;  // removed before this process was present
    if (error != 0) {
      return IoError(Format("cannot make a file in '{}': {}", shown, ErrnoText(error)));
    }
    struct stat info;
    if (::fstat(job->get(), &info) == 0 && StillNamed(parent.get(), name, info)) return job;
    // The folder was renamed before this process was present. Its presence must not look like that
    // of a rank. It may have kept the remover from removing the folder.
    job->Withdraw();
    RemoveIfAbandoned(parent.get(), name, job->get(), steady_clock::now() + limit);
  }
  return IoError(Format("cannot enter '{}': others keep removing it", shown));
}

Result<std::unique_ptr<JobFolder>> JobFolder::Visit(Descriptor parent, const std::string& name,
                                                    const std::string& shown) {
  ASSIGN_OR_RETURN(Descriptor folder, OpenExistingFolder(parent.get(), name, shown));
  return std::unique_ptr<JobFolder>(
      new JobFolder(std::move(parent), name, std::move(folder), std::chrono::milliseconds(0)));
}

void JobFolder::KeepAlive(Deadline deadline) {
  if (!maker_.Here()) return;
  const Turn::Holder turn(&turn_, deadline);
  if (!turn.held() || presence_.empty()) return;
  const timespec now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};  // the file system's now
  if (::utimensat(folder_.get(), presence_.c_str(), now, AT_SYMLINK_NOFOLLOW) != 0 &&
      errno == ENOENT) {
    MakePresence();
  }
}

void JobFolder::Leave(Deadline deadline) {
  if (!maker_.Here()) return;
  const Turn::Holder turn(&turn_, deadline);
  if (!turn.held() || presence_.empty()) return;
  Withdraw();
  RemoveIfAbandoned(parent_.get(), name_, folder_.get(), deadline);
}

void JobFolder::Withdraw() {
  if (!maker_.Here() || presence_.empty()) return;
  ::unlinkat(folder_.get(), presence_.c_str(), 0);
  presence_.clear();
}

void JobFolder::SweepSiblings(Deadline deadline) const {
  struct stat ours;
  // The time is that of the file system: the clocks of hosts may differ.
  if (presence_.empty() ||
      ::fstatat(folder_.get(), presence_.c_str(), &ours, AT_SYMLINK_NOFOLLOW) != 0) {
    return;
  }
  int removed = 0;
  ForEachName(parent_.get(), kMostSiblings, [&](const std::string& name) {
    if (name == name_ || (name.front() == '.' && !Begins(name, kGone))) return true;
    const Result<Descriptor> folder = OpenExistingFolder(parent_.get(), name, name);
    if (folder.ok() && IsRemains(parent_.get(), name, folder.value().get(), ours.st_mtime) &&
        RemoveUnlessUsed(parent_.get(), name, folder.value().get(), ours.st_mtime - kDaySeconds,
                         deadline)) {
      ++removed;
    }
    return removed < kMostRemoved && steady_clock::now() < deadline;
  });
}

}  // namespace diapason::agree
