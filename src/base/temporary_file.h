#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace diapason {

// A file of a name nobody else has, in TMPDIR or /tmp, that is gone when this is.
class TemporaryFile {
 public:
  TemporaryFile() = default;
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  // Makes it, with this content. `purpose` is a part of its name.
  Status Create(std::string_view purpose, std::string_view content = {});
  // "" before Create, and where that failed.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace diapason
