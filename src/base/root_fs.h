#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace diapason {

// The files below a root, read only: "/" for this machine, or a folder that looks like one (a
// host's root mounted into a container, a copy somebody sent, a fake for tests). Paths are written
// as on the machine itself: "/sys/class/infiniband". Nothing here fails loudly: hardware that is
// not there is a file that is not there.
class RootFs {
 public:
  explicit RootFs(std::string root = "/");

  // The content of a small file, without blanks at its end; nothing when it is not there, cannot be
  // read, or is larger than `limit` bytes. Never blocks on a pipe.
  std::optional<std::string> Read(const std::string& path, size_t limit = 65536) const;
  // The same as a decimal number.
  std::optional<int64_t> ReadNumber(const std::string& path) const;
  // The names in a folder, sorted as people count ("cpu2" before "cpu10"); none when it is not
  // there. At most 65536.
  std::vector<std::string> List(const std::string& path) const;
  // Where a symbolic link points, as it is written.
  std::optional<std::string> Link(const std::string& path) const;
  bool Exists(const std::string& path) const;
  bool IsFolder(const std::string& path) const;
  // Where it lies on this machine, for those who must hand a name to somebody else.
  std::string Place(const std::string& path) const;

  // Whether this is the machine we run on: libraries may be opened and programs asked.
  bool live() const { return root_.empty(); }
  const std::string& root() const { return root_; }  // "" for "/"

 private:
  std::string root_;
};

// "0-3,8,10-11" -> {0, 1, 2, 3, 8, 10, 11}, as the kernel writes lists of CPUs and nodes. What
// cannot be read is left out; at most 65536 numbers.
std::vector<int> ParseCpuList(const std::string& text);
// And back, the shortest form.
std::string CpuListText(const std::vector<int>& cpus);

}  // namespace diapason
