#include "base/temporary_file.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>

#include "base/environment.h"
#include "base/file.h"

namespace diapason {

TemporaryFile::~TemporaryFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

Status TemporaryFile::Create(std::string_view purpose, std::string_view content) {
  const std::string folder = ProcessEnvironment().Get("TMPDIR").value_or("");
  std::string path =
      (folder.starts_with('/') ? folder : "/tmp") + "/diapason-" + std::string(purpose) + "-XXXXXX";
  const int fd = ::mkstemp(path.data());
  if (fd < 0) return IoError("cannot create '" + path + "': " + ErrnoText(errno));
  path_ = path;
  const auto written = content.empty() ? 0 : ::write(fd, content.data(), content.size());
  const int error = errno;
  ::close(fd);
  if (written == static_cast<ssize_t>(content.size())) return {};
  return IoError("cannot write '" + path + "': " + ErrnoText(written < 0 ? error : ENOSPC));
}

}  // namespace diapason
