#include "launch/launch_secret.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/environment.h"
#include "base/file.h"
#include "rendezvous/secret.h"

namespace diapason::launch {

Status LaunchSecret::Make() {
  ASSIGN_OR_RETURN(const std::string secret, rendezvous::DrawSecret());
  const std::string wanted = ProcessEnvironment().Get("TMPDIR").value_or("");
  Status made;
  for (const std::string& place : {wanted, std::string("/tmp"), std::string("/dev/shm")}) {
    if (!place.starts_with('/')) continue;
    made = MakeIn(place, secret);
    if (made.ok()) return made;
    Remove();
  }
  return made.WithContext("no place for the job's secret");
}

Status LaunchSecret::MakeIn(const std::string& place, const std::string& secret) {
  std::string folder = place + "/diapason-launch-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) {
    return IoError("cannot make a folder in '" + place + "': " + ErrnoText(errno));
  }
  folder_ = folder;
  path_ = folder + "/secret";
  lock_ = Descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock_.open()) (void)::flock(lock_.get(), LOCK_SH | LOCK_NB);
  const Descriptor file(
      ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  const auto length = static_cast<ssize_t>(secret.size());
  // Some folders give their files a mode of their own.
  if (!file.open() || ::fchmod(file.get(), 0600) != 0 ||
      ::write(file.get(), secret.data(), secret.size()) != length) {
    return IoError("cannot write '" + path_ + "': " + ErrnoText(errno));
  }
  return {};
}

void LaunchSecret::Remove() const {
  if (folder_.empty()) return;
  (void)::unlink(path_.c_str());
  (void)::rmdir(folder_.c_str());
}

}  // namespace diapason::launch
