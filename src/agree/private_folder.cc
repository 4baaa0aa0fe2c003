#include "agree/private_folder.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "agree/store.h"
#include "base/file.h"
#include "base/random.h"
#include "base/text.h"

namespace diapason::agree {
namespace {

constexpr mode_t kOthers = 077;
constexpr int kMostAttempts = 10;

bool PlainLetters(std::string_view text) {
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-';
    if (!plain) return false;
  }
  return true;
}

Status CheckName(std::string_view what, std::string_view name) {
  const std::string shown(name.substr(0, kLongestKey));
  if (name.empty() || name.front() == '.' || !PlainLetters(name)) {
    return Invalid(Format("{} '{}' must be letters, digits and \"._-\", and not begin with a dot",
                          what, shown));
  }
  if (name.size() > kLongestKey) {
    return Invalid(Format("{} '{}...' is longer than {} letters", what, shown, kLongestKey));
  }
  return {};
}

int OpenFolderAt(int parent, const std::string& name) {
  return ::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// A folder that was just opened; an error unless it belongs to this user alone, or with errno's
// message.
Result<Descriptor> Checked(Descriptor folder, const std::string& shown) {
  if (folder.get() < 0) {
    const int error = errno;
    if (error == ENOTDIR || error == ELOOP) {
      return Unavailable(
          Format("'{}' is not a directory but something else, perhaps a link; remove "
                 "it, or use another store",
                 shown));
    }
    return IoError(Format("cannot open '{}': {}", shown, ErrnoText(error)));
  }
  struct stat info;
  if (::fstat(folder.get(), &info) != 0) {
    return IoError(Format("cannot look at '{}': {}", shown, ErrnoText(errno)));
  }
  if (info.st_uid != ::geteuid()) {
    return Unavailable(
        Format("'{}' belongs to user {} and not to us (user {}); remove it, or use "
               "another store",
               shown, static_cast<unsigned>(info.st_uid), static_cast<unsigned>(::geteuid())));
  }
  if ((info.st_mode & kOthers) != 0) {
    return Unavailable(Format("others may enter '{}' (mode {:03o}); chmod 700 it, or remove it",
                              shown, static_cast<unsigned>(info.st_mode & 0777)));
  }
  return folder;
}

}  // namespace

Result<Descriptor> OpenPrivateFolder(int parent, const std::string& name,
                                     const std::string& shown) {
  Descriptor folder;
  for (int attempt = 0; attempt < kMostAttempts && folder.get() < 0; ++attempt) {
    if (::mkdirat(parent, name.c_str(), 0700) != 0 && errno != EEXIST) {
      return IoError(Format("cannot make the folder '{}': {}", shown, ErrnoText(errno)));
    }
    folder = Descriptor(OpenFolderAt(parent, name));
    // Another process has removed or renamed it meanwhile.
    if (folder.get() < 0 && errno != ENOENT) break;
  }
  return Checked(std::move(folder), shown);
}

Result<Descriptor> OpenExistingFolder(int parent, const std::string& name,
                                      const std::string& shown) {
  Descriptor folder(OpenFolderAt(parent, name));
  if (folder.get() < 0 && errno == ENOENT) {
    return NotFound(Format("there is no folder '{}'", shown));
  }
  return Checked(std::move(folder), shown);
}

std::string NotOurs(const struct stat& info) {
  if (!S_ISREG(info.st_mode)) return "it is not a regular file";
  if (info.st_uid != ::geteuid()) {
    return Format("it belongs to user {}", static_cast<unsigned>(info.st_uid));
  }
  if ((info.st_mode & kOthers) != 0) {
    return Format("others may use it (mode {:03o})", static_cast<unsigned>(info.st_mode & 0777));
  }
  return "";
}

bool StillNamed(int folder, const std::string& name, const struct stat& info) {
  struct stat now;
  return ::fstatat(folder, name.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0 &&
         now.st_dev == info.st_dev && now.st_ino == info.st_ino;
}

uint64_t RandomWord() {
  uint64_t word = 0;
  if (::getrandom(&word, sizeof(word), GRND_NONBLOCK) == sizeof(word)) return word;
  // The machine has just started and has no randomness. Time, process and thread distinguish its
  // processes.
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return MixBits(static_cast<uint64_t>(now) ^ MixBits(static_cast<uint64_t>(::getpid())) ^
                 reinterpret_cast<uintptr_t>(&word));
}

std::string RandomName() { return Format("{:016x}", RandomWord()); }

Status CheckKey(std::string_view key) { return CheckName("key", key); }

Status CheckJob(std::string_view job) { return CheckName("the job's name", job); }

Status CheckValue(std::string_view value) {
  if (value.size() <= kLongestValue) return {};
  return Invalid(Format("a value of {} bytes; a cell takes up to {}", value.size(), kLongestValue));
}

}  // namespace diapason::agree
