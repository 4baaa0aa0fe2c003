#include "base/owner_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "base/host_name.h"
#include "base/printable.h"
#include "base/text.h"

namespace diapason {
namespace {

// Retries: the last owner may remove the file between opening and locking it.
constexpr int kTries = 100;
constexpr size_t kMostText = 512;

std::string Owner() {
  const time_t now = time(nullptr);
  tm parts{};
  localtime_r(&now, &parts);
  char since[64] = "";
  strftime(since, sizeof(since), "%Y-%m-%d %H:%M:%S %z", &parts);
  return Format("process {} on {} since {}", static_cast<int>(getpid()), HostName(), since);
}

// The owner, as written in the file.
std::string OwnerIn(int fd) {
  char text[kMostText];
  const ssize_t got = ::pread(fd, text, sizeof(text), 0);
  if (got <= 0) return "another process";
  return Printable(Trim(std::string_view(text, static_cast<size_t>(got))));
}

bool SameFile(int fd, const std::string& path) {
  struct stat locked;
  struct stat there;
  return ::fstat(fd, &locked) == 0 && ::stat(path.c_str(), &there) == 0 &&
         locked.st_dev == there.st_dev && locked.st_ino == there.st_ino;
}

}  // namespace

Result<std::unique_ptr<OwnerLock>> OwnerLock::Take(const std::string& path,
                                                   const std::string& what) {
  const auto failed = [&](const char* verb) {
    return IoError(Format("cannot {} '{}': {}", verb, path, ErrnoText(errno)));
  };
  for (int i = 0; i < kTries; ++i) {
    const int fd =
        ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (fd < 0) return failed("open");
    std::unique_ptr<OwnerLock> lock(new OwnerLock(fd, ""));
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return failed("lock");
      return Unavailable(what + " is in use by " + OwnerIn(fd));
    }
    // The last owner may have removed it meanwhile: then other processes lock another file.
    if (!SameFile(fd, path)) continue;
    const std::string owner = Owner() + "\n";
    if (::ftruncate(fd, 0) != 0 ||
        ::pwrite(fd, owner.data(), owner.size(), 0) != static_cast<ssize_t>(owner.size())) {
      return failed("write");
    }
    lock->path_ = path;
    return lock;
  }
  return Unavailable(what + " is in use by other processes that begin and end all the time");
}

OwnerLock::~OwnerLock() {
  // Unlinks before unlocking, so that the next owner's file is not removed.
  if (!path_.empty()) (void)::unlink(path_.c_str());
  ::close(fd_);
}

}  // namespace diapason
