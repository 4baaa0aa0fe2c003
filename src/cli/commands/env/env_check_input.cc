#include "cli/commands/env/env_check_input.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/descriptor.h"
#include "base/file.h"
#include "base/text.h"

namespace diapason::cli {
namespace {

constexpr size_t kLargestFile = 4 << 20;
constexpr int kLongestSilenceMs = 30000;

// Whether the text has no byte of binary files: tabs, line ends and colour escapes are accepted,
// and so are the zero bytes of /proc/PID/environ after each variable.
bool LooksLikeText(std::string_view text) {
  const size_t zero = text.find('\0');
  if (zero != std::string_view::npos && text.substr(0, zero).find('=') == std::string_view::npos) {
    return false;
  }
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 32 || c == '\0' || c == '\t' || c == '\n' || c == '\r' || c == '\f' ||
           c == '\033';
  });
}

Result<std::string> ReadStandardInput() {
  std::string text;
  char buffer[65536];
  size_t count = 0;
  while ((count = std::fread(buffer, 1, sizeof(buffer), stdin)) > 0) {
    text.append(buffer, count);
    if (text.size() > kLargestFile) return Invalid("standard input is too large to be variables");
  }
  return text;
}

Result<std::string> ReadPipe(const std::string& path) {
  const Descriptor pipe(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!pipe.open()) return Invalid("cannot read '" + path + "': " + ErrnoText(errno));
  std::string text;
  char buffer[65536];
  while (text.size() <= kLargestFile) {
    pollfd wait = {pipe.get(), POLLIN, 0};
    const int ready = poll(&wait, 1, kLongestSilenceMs);
    if (ready == 0) return Invalid("'" + path + "' is a pipe into which nothing is written");
    if (ready < 0 && errno != EINTR) break;
    const ssize_t count = read(pipe.get(), buffer, sizeof(buffer));
    if (count == 0) return text;
    if (count > 0) {
      text.append(buffer, static_cast<size_t>(count));
    } else if (errno != EAGAIN && errno != EINTR) {
      return Invalid("cannot read '" + path + "': " + ErrnoText(errno));
    }
  }
  return Invalid("'" + path + "' is too large to be variables");
}

}  // namespace

Result<std::string> ReadTextToCheck(const std::string& file) {
  struct stat status = {};
  const bool pipe = file != "-" && stat(file.c_str(), &status) == 0 &&
                    (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
  ASSIGN_OR_RETURN(std::string text, file == "-" ? ReadStandardInput()
                                     : pipe      ? ReadPipe(file)
                                                 : ReadFile(file, kLargestFile));
  if (LooksLikeText(text)) return text;
  return Invalid("'" + (file == "-" ? "standard input" : file) +
                 "' is not a text file: neither a script nor a list of variables");
}

}  // namespace diapason::cli
