#include "job_tune/journal_window.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/descriptor.h"
#include "base/file.h"

namespace diapason::job_tune {
namespace {

constexpr size_t kMostAtOnce = size_t{64} << 20;
constexpr size_t kMostKept = size_t{16} << 20;
constexpr size_t kMostCaptured = size_t{4} << 20;
constexpr size_t kReadAtOnce = size_t{1} << 20;

bool Describes(std::string_view line) {
  const std::string_view start = line.substr(0, 40);
  return start.find("\"type\":\"journal\"") != std::string_view::npos ||
         start.find("\"type\":\"communicator\"") != std::string_view::npos;
}

bool AsksAboutCaptured(std::string_view line) {
  return line.substr(0, 40).find("\"type\":\"decision\"") != std::string_view::npos &&
         line.find(",\"captured\":true") != std::string_view::npos;
}

}  // namespace

Status JournalWindow::Read() {
  const Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0) return IoError("cannot read '" + path_ + "': " + ErrnoText(errno));
  std::string piece(kReadAtOnce, '\0');
  for (size_t taken = 0; taken < kMostAtOnce;) {
    const ssize_t got =
        ::pread(file.get(), piece.data(), piece.size(), static_cast<off_t>(offset_));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return IoError("cannot read '" + path_ + "': " + ErrnoText(errno));
    if (got == 0) break;
    offset_ += static_cast<uint64_t>(got);
    taken += static_cast<size_t>(got);
    partial_.append(piece, 0, static_cast<size_t>(got));
    size_t begin = 0;
    for (size_t end = 0; (end = partial_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const std::string_view line(partial_.data() + begin, end + 1 - begin);
      const bool captured = captured_.size() < kMostCaptured && AsksAboutCaptured(line);
      (Describes(line) ? head_ : captured ? captured_ : lines_).append(line);
    }
    partial_.erase(0, begin);
    DropOldest();
  }
  return {};
}

void JournalWindow::DropOldest() {
  if (lines_.size() <= kMostKept) return;
  const size_t line = lines_.find('\n', lines_.size() - kMostKept / 2);
  lines_.erase(0, line == std::string::npos ? lines_.size() : line + 1);
}

void JournalWindow::Open() {
  captured_.clear();
  lines_.clear();
}

Result<journal::JournalContents> JournalWindow::Contents() const {
  return journal::ParseJournal(head_ + captured_ + lines_, path_);
}

bool HasRecords(const std::vector<std::string>& journals) {
  for (const std::string& path : journals) {
    JournalWindow window(path);
    if (window.Read().ok() && window.bytes() > 0) return true;
  }
  return false;
}

}  // namespace diapason::job_tune
