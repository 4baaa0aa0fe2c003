#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace diapason {

// A file with a unique name in TMPDIR or /tmp; the destructor removes it.
class TemporaryFile {
 public:
  TemporaryFile() = default;
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  // Creates it with this content. `purpose` is a part of its name.
  Status Create(std::string_view purpose, std::string_view content = {});
  // "" before Create, and if Create failed.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A folder with a unique name; the destructor removes it with everything in it.
class TemporaryFolder {
 public:
  // In `place`; without it in TMPDIR or /tmp.
  explicit TemporaryFolder(std::string place = {});
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  // "" if it could not be created.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace diapason
