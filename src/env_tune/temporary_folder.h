#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

namespace diapason::env_tune {

// A folder that is gone in the end, with the files in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const char* base = ::getenv("TMPDIR");
    std::string path =
        std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/diapason-tune-XXXXXX";
    if (::mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~TemporaryFolder() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
      files.push_back(entry.path());
    }
    return files;
  }

 private:
  std::string path_;
};

}  // namespace diapason::env_tune
