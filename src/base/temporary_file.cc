#include "base/temporary_file.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/environment.h"
#include "base/file.h"

namespace diapason {
namespace {

std::string UsualPlace() {
  const std::string wanted = ProcessEnvironment().Get("TMPDIR").value_or("");
  return wanted.starts_with('/') ? wanted : "/tmp";
}

}  // namespace

TemporaryFile::~TemporaryFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

Status TemporaryFile::Create(std::string_view purpose, std::string_view content) {
  std::string path = UsualPlace() + "/diapason-" + std::string(purpose) + "-XXXXXX";
  const int fd = ::mkstemp(path.data());
  if (fd < 0) return IoError("cannot create '" + path + "': " + ErrnoText(errno));
  path_ = path;
  const auto written = content.empty() ? 0 : ::write(fd, content.data(), content.size());
  const int error = errno;
  ::close(fd);
  if (written == static_cast<ssize_t>(content.size())) return {};
  return IoError("cannot write '" + path + "': " + ErrnoText(written < 0 ? error : ENOSPC));
}

TemporaryFolder::TemporaryFolder(std::string place) {
  std::string path = (place.empty() ? UsualPlace() : std::move(place)) + "/diapason-XXXXXX";
  if (::mkdtemp(path.data()) != nullptr) path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace diapason
