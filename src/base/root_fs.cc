#include "base/root_fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <climits>

#include "base/descriptor.h"
#include "base/text.h"

namespace diapason {
namespace {

constexpr size_t kMostNames = 65536;
constexpr int kMostCpus = 65536;

// Natural order: digits in names compare as numbers.
bool AsPeopleCount(const std::string& a, const std::string& b) {
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    const bool digits = std::isdigit(static_cast<unsigned char>(a[i])) != 0 &&
                        std::isdigit(static_cast<unsigned char>(b[j])) != 0;
    if (!digits) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
      continue;
    }
    const auto end_of = [](const std::string& text, size_t from) {
      while (from < text.size() && std::isdigit(static_cast<unsigned char>(text[from])) != 0) {
        ++from;
      }
      return from;
    };
    const size_t end_a = end_of(a, i);
    const size_t end_b = end_of(b, j);
    while (i + 1 < end_a && a[i] == '0') ++i;
    while (j + 1 < end_b && b[j] == '0') ++j;
    if (end_a - i != end_b - j) return end_a - i < end_b - j;
    const int order = a.compare(i, end_a - i, b, j, end_b - j);
    if (order != 0) return order < 0;
    i = end_a;
    j = end_b;
  }
  if (a.size() - i != b.size() - j) return a.size() - i < b.size() - j;
  return a < b;
}

// Opens a path below the root. Symbolic links resolve within that root, as on the machine they come
// from, and never lead out of it.
Descriptor OpenBelow(const std::string& root, const std::string& path, int flags) {
  if (root.empty()) return Descriptor(open(path.c_str(), flags | O_CLOEXEC));
  const Descriptor top(open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!top.open()) return Descriptor();
  open_how how{};
  how.flags = static_cast<uint64_t>(flags) | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT;
  long fd = syscall(SYS_openat2, top.get(), path.c_str(), &how, sizeof how);
  // Kernels before 5.6, and sandboxes that block the call.
  if (fd < 0 && (errno == ENOSYS || errno == EPERM)) {
    fd = open((root + path).c_str(), flags | O_CLOEXEC);
  }
  return Descriptor(static_cast<int>(fd));
}

}  // namespace

RootFs::RootFs(std::string root) : root_(std::move(root)) {
  while (!root_.empty() && root_.back() == '/') root_.pop_back();
}

std::string RootFs::Place(const std::string& path) const { return root_ + path; }

std::optional<std::string> RootFs::Read(const std::string& path, size_t limit) const {
  const Descriptor file = OpenBelow(root_, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct stat about {};
  // Files of /proc and /sys are regular ones, whatever size they report.
  if (fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) return std::nullopt;
  std::string text;
  char block[16384];
  ssize_t got = 0;
  while (text.size() <= limit) {
    got = read(file.get(), block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(block, static_cast<size_t>(got));
  }
  if (got < 0 || text.size() > limit) return std::nullopt;
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.pop_back();
  }
  return text;
}

std::optional<int64_t> RootFs::ReadNumber(const std::string& path) const {
  const std::optional<std::string> text = Read(path, 64);
  int64_t value = 0;
  if (!text || !ParseSigned(Trim(*text), &value)) return std::nullopt;
  return value;
}

std::vector<std::string> RootFs::List(const std::string& path) const {
  std::vector<std::string> names;
  Descriptor file = OpenBelow(root_, path, O_RDONLY | O_DIRECTORY);
  DIR* folder = fdopendir(file.get());
  if (folder == nullptr) return names;
  (void)file.Release();  // the listing closes it
  while (names.size() < kMostNames) {
    const dirent* entry = readdir(folder);
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(folder);
  std::sort(names.begin(), names.end(), AsPeopleCount);
  return names;
}

std::optional<std::string> RootFs::Link(const std::string& path) const {
  char target[PATH_MAX];
  const ssize_t size = readlink(Place(path).c_str(), target, sizeof target);
  if (size < 0 || static_cast<size_t>(size) == sizeof target) return std::nullopt;
  return std::string(target, static_cast<size_t>(size));
}

bool RootFs::Exists(const std::string& path) const { return OpenBelow(root_, path, O_PATH).open(); }

bool RootFs::IsFolder(const std::string& path) const {
  return OpenBelow(root_, path, O_PATH | O_DIRECTORY).open();
}

std::vector<int> ParseCpuList(const std::string& text) {
  std::vector<int> cpus;
  for (const std::string_view part : Split(text, ',')) {
    const std::vector<std::string_view> ends = Split(Trim(part), '-');
    uint64_t low = 0;
    uint64_t high = 0;
    if (ends.empty() || ends.size() > 2 || !ParseUnsigned(ends[0], &low)) continue;
    high = low;
    if (ends.size() == 2 && !ParseUnsigned(ends[1], &high)) continue;
    for (uint64_t cpu = low; cpu <= high && cpu < kMostCpus; ++cpu) {
      cpus.push_back(static_cast<int>(cpu));
    }
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::string CpuListText(const std::vector<int>& cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ",";
    text += std::to_string(cpus[i]);
    if (last > i) text += "-" + std::to_string(cpus[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace diapason
