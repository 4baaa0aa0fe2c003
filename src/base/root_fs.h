#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace diapason {

// The files below a root, read only: "/" for this machine, or a folder that looks like one (a
// host's root mounted into a container, a copy sent by a user, a fake for tests). Paths are those
// on the machine itself: "/sys/class/infiniband". Errors are not reported: a missing device is a
// missing file.
class RootFs {
 public:
  explicit RootFs(std::string root = "/");

  // The content of a small file, without trailing blanks; nullopt if it does not exist, cannot be
  // read, or is larger than `limit` bytes. Never blocks on a pipe.
  std::optional<std::string> Read(const std::string& path, size_t limit = 65536) const;
  // The same as a decimal number.
  std::optional<int64_t> ReadNumber(const std::string& path) const;
  // The names in a folder in natural order ("cpu2" before "cpu10"); empty if it does not exist. At
  // most 65536.
  std::vector<std::string> List(const std::string& path) const;
  // The target of a symbolic link, as written.
  std::optional<std::string> Link(const std::string& path) const;
  bool Exists(const std::string& path) const;
  bool IsFolder(const std::string& path) const;
  // The path on this machine, for passing to other functions and programs.
  std::string Place(const std::string& path) const;

  // Whether this is the running machine: libraries may be opened and programs run.
  bool live() const { return root_.empty(); }
  const std::string& root() const { return root_; }  // "" for "/"

 private:
  std::string root_;
};

// "0-3,8,10-11" -> {0, 1, 2, 3, 8, 10, 11}, as the kernel writes lists of CPUs and nodes. Invalid
// parts are skipped; at most 65536 numbers.
std::vector<int> ParseCpuList(const std::string& text);
// The inverse, in the shortest form.
std::string CpuListText(const std::vector<int>& cpus);

}  // namespace diapason
