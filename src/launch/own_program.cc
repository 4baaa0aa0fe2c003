#include "launch/own_program.h"

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
  constexpr size_t kMost = size_t{64} << 20;
  ASSIGN_OR_RETURN(std::string text, ReadFile("/proc/self/cmdline", kMost));
  if (text.empty()) return Internal("this process has no command line");
  // Each argument ends with a NUL.
  if (text.back() == '\0') text.pop_back();
  const std::vector<std::string_view> arguments = Split(text, '\0');
  return std::vector<std::string>(arguments.begin(), arguments.end());
}

}  // namespace diapason::launch
