#pragma once

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

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
    for (const std::string& file : Files()) ::unlink(file.c_str());
    if (!path_.empty()) ::rmdir(path_.c_str());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    DIR* folder = path_.empty() ? nullptr : ::opendir(path_.c_str());
    if (folder == nullptr) return files;
    while (const dirent* entry = ::readdir(folder)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") files.push_back(path_ + "/" + name);
    }
    ::closedir(folder);
    return files;
  }

 private:
  std::string path_;
};

}  // namespace diapason::env_tune
