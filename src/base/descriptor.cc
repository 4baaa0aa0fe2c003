#include "base/descriptor.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"

namespace diapason {

Result<Pipe> MakePipe(int flags) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | flags) != 0) {
    return IoError("cannot make a pipe: " + ErrnoText(errno));
  }
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

int WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

int MillisecondsTo(Deadline deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                        deadline - std::chrono::steady_clock::now())
                        .count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1000000));
}

}  // namespace diapason
