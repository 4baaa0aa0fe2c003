#include "launch/own_program.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "base/text.h"

namespace diapason::launch {

Result<std::string> OwnProgram() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (length <= 0) return IoError("cannot read /proc/self/exe: " + ErrnoText(errno));
  return std::string(path, static_cast<size_t>(length));
}

Result<std::vector<std::string>> OwnArguments() {
  const int fd = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return IoError("cannot read /proc/self/cmdline: " + ErrnoText(errno));
  std::string text;
  char block[4096];
  ssize_t got = 0;
  while ((got = ::read(fd, block, sizeof(block))) > 0) text.append(block, static_cast<size_t>(got));
  ::close(fd);
  std::vector<std::string> arguments;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\0', at);
    arguments.push_back(text.substr(at, end - at));
    if (end == std::string::npos) break;
    at = end + 1;
  }
  if (arguments.empty()) return Internal("this process has no command line");
  return arguments;
}

}  // namespace diapason::launch
