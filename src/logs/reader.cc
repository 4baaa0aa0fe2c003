#include "logs/reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>

#include "base/file.h"
#include "base/root_fs.h"
#include "base/text.h"
#include "flight_recorder/read.h"
#include "logs/collect.h"

namespace diapason::logs {
namespace {

constexpr size_t kBlock = 1 << 20;
constexpr size_t kLongestLine = 64 << 10;
constexpr size_t kSample = 4096;  // bytes examined to recognise text
constexpr size_t kMostNamed = 8;

enum class SourceKind { kLog, kFlight, kTopology, kGraph };

// The kind of a file by its first bytes; an error if it is not text.
Result<SourceKind> KindOf(std::string_view start) {
  if (flight_recorder::LooksLikeDump(start)) return SourceKind::kFlight;
  if (start.starts_with("PK\x03\x04")) {
    return Invalid("this is an archive (zip, or what torch.save writes), not a log");
  }
  if (start.starts_with("\x1f\x8b") || start.starts_with("\x28\xb5\x2f\xfd") ||
      start.starts_with("BZh") ||
      start.starts_with("\xfd"
                        "7zXZ")) {
    return Invalid(
        "this is compressed; unpack it on the way: zcat FILE | diapason logs - (a dump of the "
        "flight recorder: into a file with the rank in its name)");
  }
  if (start.starts_with("\x7f"
                        "ELF")) {
    return Invalid("this is a program, not a log");
  }
  const size_t first = start.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return SourceKind::kLog;
  const std::string_view head = start.substr(first, kLongestLine);
  if (head.starts_with("<system ")) return SourceKind::kTopology;
  if (head.starts_with("<graphs ")) return SourceKind::kGraph;
  const std::string_view sample = head.substr(0, kSample);
  // A damaged log may contain a zero byte; random bytes have one odd byte in twelve.
  size_t odd = 0;
  for (const char c : sample) {
    const auto byte = static_cast<unsigned char>(c);
    odd += byte < 9 || (byte > 13 && byte < 27) ? 1 : 0;
  }
  if (odd * 16 > sample.size()) {
    return Invalid("this is no text (UTF-16 is not either: make it UTF-8 with iconv)");
  }
  return SourceKind::kLog;
}

// Reads `fd`, passes whole lines on and returns the number of bytes.
class Blocks {
 public:
  // Reads `memory` if `fd` is negative.
  Blocks(int fd, std::string_view memory) : fd_(fd), memory_(memory), buffer_(new char[kBlock]) {}

  // The first bytes; Next() returns them again.
  Result<std::string_view> Peek() {
    RETURN_IF_ERROR(Fill());
    return std::string_view(buffer_.get(), filled_);
  }
  uint64_t bytes() const { return bytes_; }

  template <typename OnLines, typename OnLong>
  Status ForEach(const OnLines& lines, const OnLong& long_line) {
    bool inside = false;  // a line whose start has been passed on already
    for (;;) {
      RETURN_IF_ERROR(Fill());
      if (filled_ == 0) return {};
      const auto* last = static_cast<const char*>(memrchr(buffer_.get(), '\n', filled_));
      size_t used = 0;
      if (inside) {
        const auto* feed = static_cast<const char*>(std::memchr(buffer_.get(), '\n', filled_));
        if (feed == nullptr) {
          filled_ = 0;
          continue;
        }
        used = static_cast<size_t>(feed - buffer_.get()) + 1;
        inside = false;
      }
      const size_t end = last == nullptr ? 0 : static_cast<size_t>(last - buffer_.get()) + 1;
      if (end > used) {
        lines(std::string_view(buffer_.get() + used, end - used));
        used = end;
      }
      const size_t rest = filled_ - used;
      if (ended_ || rest > kLongestLine) {
        if (rest > kLongestLine) {
          long_line(std::string_view(buffer_.get() + used, kLongestLine));
          inside = true;
        } else if (rest > 0) {
          lines(std::string_view(buffer_.get() + used, rest));
        }
        filled_ = 0;
        if (ended_) return {};
        continue;
      }
      std::memmove(buffer_.get(), buffer_.get() + used, rest);
      filled_ = rest;
    }
  }

 private:
  // Until the buffer is full or the input ends.
  Status Fill() {
    while (filled_ < kBlock && !ended_) {
      ssize_t got = 0;
      if (fd_ < 0) {
        got = static_cast<ssize_t>(std::min(memory_.size(), kBlock - filled_));
        std::memcpy(buffer_.get() + filled_, memory_.data(), static_cast<size_t>(got));
        memory_.remove_prefix(static_cast<size_t>(got));
      } else {
        got = read(fd_, buffer_.get() + filled_, kBlock - filled_);
      }
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return IoError(ErrnoText(errno));
      if (got == 0) ended_ = true;
      filled_ += static_cast<size_t>(got);
      bytes_ += static_cast<uint64_t>(got);
    }
    return {};
  }

  int fd_;
  std::string_view memory_;
  std::unique_ptr<char[]> buffer_;
  size_t filled_ = 0;
  uint64_t bytes_ = 0;
  bool ended_ = false;
};

class LogReader {
 public:
  // With `warnings` truncated dumps are read as far as they go; without they are errors.
  LogReader(LogFacts* facts, std::vector<std::string>* warnings)
      : facts_(facts), warnings_(warnings), collector_(facts) {}
  ~LogReader() { collector_.Finish(); }
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

  // Reads `memory` if `fd` is negative.
  Status Read(int fd, std::string_view memory, const std::string& name) {
    Blocks blocks(fd, memory);
    ASSIGN_OR_RETURN(std::string_view start, fd < 0 ? memory : blocks.Peek());
    const Result<SourceKind> kind = KindOf(start);
    if (!kind.ok()) {
      no_log_ = true;
      return kind.status();
    }
    if (facts_->files.size() >= kMostFiles) {
      ++facts_->files_left_out;
      return {};
    }
    const auto file = static_cast<uint32_t>(facts_->files.size());
    facts_->files.push_back({name, "log", 0, 0});
    Status status;
    if (kind.value() == SourceKind::kFlight) {
      facts_->files[file].kind = "flight recorder";
      const uint64_t known = facts_->flight.entries;
      const size_t dumps = facts_->flight.dumps.size();
      status = flight_recorder::ReadDump(fd, start, name, &facts_->flight);
      const bool read = facts_->flight.dumps.size() > dumps || facts_->flight.entries > known;
      if (!status.ok() && warnings_ != nullptr && read) {
        // Jobs are killed while they write.
        warnings_->push_back("'" + name + "': " + status.message() +
                             "; what stands before that was read");
        status = {};
      }
      if (!status.ok() && !read) {
        no_log_ = true;
        facts_->files.pop_back();
        return status;
      }
      struct stat about = {};
      facts_->files[file].bytes = fd >= 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode)
                                      ? static_cast<uint64_t>(about.st_size)
                                      : start.size();
    } else if (kind.value() == SourceKind::kLog) {
      collector_.BeginFile(file, name);
      status = blocks.ForEach([&](std::string_view lines) { collector_.Lines(lines); },
                              [&](std::string_view line) { collector_.LongLine(line); });
      collector_.EndFile();
      facts_->files[file].bytes = blocks.bytes();
    } else {
      facts_->files[file].kind = kind.value() == SourceKind::kGraph ? "graph" : "topology";
      facts_->topologies.BeginFile(file, kind.value() == SourceKind::kGraph);
      uint64_t line = 0;
      const auto each = [&](std::string_view lines) {
        for (const std::string_view text : Split(lines, '\n')) {
          facts_->topologies.Line({file, ++line}, text);
        }
        if (lines.ends_with('\n')) --line;
      };
      status = blocks.ForEach(each, each);
      facts_->files[file].bytes = blocks.bytes();
      facts_->files[file].lines = line;
    }
    facts_->bytes += facts_->files[file].bytes;
    return status;
  }

  // Whether the last failed file is of an unknown kind, rather than damaged.
  bool no_log() const { return no_log_; }

  Status ReadPath(const std::string& path) {
    no_log_ = false;
    if (path == "-") return Read(STDIN_FILENO, {}, "standard input");
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
      const std::string why = ErrnoText(errno);
      return errno == ENOENT ? NotFound(why) : IoError(why);
    }
    struct stat about = {};
    Status status;
    if (fstat(fd, &about) != 0) {
      status = IoError(ErrnoText(errno));
    } else if (!S_ISREG(about.st_mode) && !S_ISFIFO(about.st_mode)) {
      status = Invalid("neither a file nor a folder nor a pipe");
    } else if (S_ISREG(about.st_mode) && !read_.emplace(about.st_dev, about.st_ino).second) {
      // The same file by another name, or in a folder given as well: its lines must not count
      // twice.
    } else {
      if (S_ISFIFO(about.st_mode)) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
      status = Read(fd, {}, path);
    }
    close(fd);
    return status;
  }

 private:
  LogFacts* facts_;
  std::vector<std::string>* warnings_;
  Collector collector_;
  bool no_log_ = false;
  std::set<std::pair<dev_t, ino_t>> read_;
};

// For a folder without files.
std::string OnlyFolders(const std::string& path, std::vector<std::string> folders) {
  const size_t more = folders.size() > kMostNamed ? folders.size() - kMostNamed : 0;
  folders.resize(folders.size() - more);
  return "'" + path + "' holds no files, only folders, which are not entered; name them: " +
         Join(folders, ", ") + (more > 0 ? Format(" and {} more", more) : "");
}

}  // namespace

std::string LogFacts::ProcessText(uint32_t process) const {
  if (process >= processes.size()) return "an unknown process";
  const LoggedProcess& known = processes[process];
  const std::string place = Format("{}:{}", hosts[known.host], known.pid);
  if (known.rank < 0) return place;
  return Format("rank {} ({})", known.rank, place);
}

std::string LogFacts::Where(const Spot& spot) const {
  const std::string name = spot.file < files.size() ? files[spot.file].name : "?";
  if (spot.line == 0) return name;
  return Format("{}:{}", name, spot.line);
}

std::string LogFacts::Where(const SourceLine& place) const {
  const std::string where = Where(Spot{place.file, place.line});
  return place.text.empty() ? where : where + ": " + place.text;
}

Status ReadLogs(const std::vector<std::string>& paths, LogFacts* facts,
                std::vector<std::string>* warnings) {
  LogReader reader(facts, warnings);
  Status first_no_log;
  for (const std::string& path : paths) {
    struct stat about = {};
    if (path == "-" || stat(path.c_str(), &about) != 0 || !S_ISDIR(about.st_mode)) {
      const Status status = reader.ReadPath(path);
      if (status.ok()) continue;
      if (paths.size() == 1 || !reader.no_log()) {
        return status.WithContext("reading '" + path + "'");
      }
      if (first_no_log.ok()) first_no_log = status.WithContext("reading '" + path + "'");
      warnings->push_back("left out '" + path + "': " + status.message());
      continue;
    }
    const std::string folder = path.ends_with('/') ? path : path + "/";
    const RootFs tree(folder);
    std::vector<std::string> folders;
    bool files = false;
    for (const std::string& name : tree.List("/")) {
      const std::string file = folder + name;
      if (name.starts_with(".")) continue;
      if (stat(file.c_str(), &about) != 0) continue;
      if (S_ISDIR(about.st_mode)) folders.push_back(name);
      if (!S_ISREG(about.st_mode)) continue;
      files = true;
      const Status status = reader.ReadPath(file);
      if (!status.ok()) warnings->push_back("left out '" + file + "': " + status.message());
    }
    if (!files && !folders.empty()) warnings->push_back(OnlyFolders(path, std::move(folders)));
  }
  if (facts->files.empty()) return first_no_log;
  return {};
}

Status ReadLogText(std::string_view text, const std::string& name, LogFacts* facts) {
  LogReader reader(facts, nullptr);
  return reader.Read(-1, text, name);
}

}  // namespace diapason::logs
