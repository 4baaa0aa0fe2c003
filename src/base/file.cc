#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/descriptor.h"
#include "base/text.h"

namespace diapason {
std::string ErrnoText(int error) {
  char buffer[128] = "";
  // GNU's strerror_r returns the text, not necessarily in the buffer.
  return strerror_r(error, buffer, sizeof(buffer));
}

bool FileExists(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0;
}

Result<std::string> ReadFile(const std::string& path, size_t limit) {
  // O_NONBLOCK: opening a pipe without a writer would wait for ever.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    const std::string message = Format("cannot open '{}': {}", path, ErrnoText(errno));
    return errno == ENOENT ? NotFound(message) : IoError(message);
  }
  struct stat info;
  if (::fstat(file.get(), &info) != 0) {
    return IoError(Format("cannot look at '{}': {}", path, ErrnoText(errno)));
  }
  if (S_ISDIR(info.st_mode)) {
    return Invalid(Format("'{}' is a directory, not a file", path));
  }
  if (!S_ISREG(info.st_mode)) {
    return Invalid(Format("'{}' is not a regular file", path));
  }
  const auto too_large = [&] {
    return Invalid(Format("'{}' is larger than {} bytes", path, limit));
  };
  if (static_cast<uint64_t>(info.st_size) > limit) return too_large();
  std::string content;
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = ::read(file.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return IoError(Format("cannot read '{}': {}", path, ErrnoText(errno)));
    }
    if (got == 0) return content;
    content.append(buffer, static_cast<size_t>(got));
    // Files in /proc and growing files can be larger than fstat reports.
    if (content.size() > limit) return too_large();
  }
}

namespace {

// Writes into an existing device or pipe.
Status WriteInto(const std::string& path, std::string_view content) {
  const auto failed = [&](const char* what) {
    return IoError(Format("cannot {} '{}': {}", what, path, ErrnoText(errno)));
  };
  // O_NONBLOCK: opening a pipe without a reader would wait for ever. Writing may wait.
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (file.get() < 0) return failed("open");
  const int flags = ::fcntl(file.get(), F_GETFL);
  if (flags >= 0) (void)::fcntl(file.get(), F_SETFL, flags & ~O_NONBLOCK);
  if (WriteAll(file.get(), content) != 0) return failed("write");
  return {};
}

// Replaces or creates a regular file.
Status Replace(const std::string& path, std::string_view content) {
  const std::string temporary = Format("{}.{}.tmp", path, static_cast<int>(::getpid()));
  const auto failed = [&](const char* what, int error) {
    ::unlink(temporary.c_str());
    return IoError(Format("cannot {} '{}': {}", what, path, ErrnoText(error)));
  };
  const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (file.get() < 0) {
    return IoError(Format("cannot create '{}': {}", path, ErrnoText(errno)));
  }
  if (const int error = WriteAll(file.get(), content); error != 0) return failed("write", error);
  if (::fsync(file.get()) != 0) return failed("flush", errno);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return failed("replace", errno);
  return {};
}

}  // namespace

std::string WhatToReplace(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return path;
  if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return "";
  char* const target = ::realpath(path.c_str(), nullptr);
  if (target == nullptr) return path;
  std::string found = target;
  std::free(target);
  return found;
}

Status WriteFileAtomically(const std::string& path, std::string_view content) {
  // "/dev/stdout": earlier output of this process must come first.
  struct stat there;
  struct stat printed;
  if (::stat(path.c_str(), &there) == 0 && ::fstat(STDOUT_FILENO, &printed) == 0 &&
      there.st_dev == printed.st_dev && there.st_ino == printed.st_ino) {
    std::fflush(stdout);
    const int error = WriteAll(STDOUT_FILENO, content);
    return error == 0 ? Status() : IoError("cannot write '" + path + "': " + ErrnoText(error));
  }
  const std::string target = WhatToReplace(path);
  return target.empty() ? WriteInto(path, content) : Replace(target, content);
}

}  // namespace diapason
