#include "launch/rank_output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace diapason::launch {
namespace {

// Where to cut a line that is too long: not inside a character of UTF-8.
size_t CutAt(std::string_view line, size_t limit) {
  size_t cut = limit;
  while (cut > limit - 4 && (static_cast<unsigned char>(line[cut]) & 0xC0U) == 0x80U) --cut;
  return cut > limit - 4 ? cut : limit;
}

Result<Descriptor> OpenLog(const std::string& path) {
  // O_NONBLOCK: a pipe without a reader would block for ever.
  Descriptor file(
      ::open(path.c_str(),
             O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644));
  if (!file.open()) {
    return IoError(Format("cannot write '{}': {}", path, ErrnoText(errno)));
  }
  struct stat info;
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return Invalid(Format("'{}' is not a regular file", path));
  }
  (void)::fcntl(file.get(), F_SETFL, O_APPEND);
  return file;
}

}  // namespace

void LinePrefixer::Emit(std::string_view line, std::string* lines) {
  while (line.size() > kLongestLine) {
    const size_t cut = CutAt(line, kLongestLine);
    Emit(line.substr(0, cut), lines);
    line.remove_prefix(cut);
  }
  lines->append(prefix_).append(line).push_back('\n');
}

void LinePrefixer::Add(std::string_view bytes, std::string* lines) {
  while (!bytes.empty()) {
    const size_t newline = bytes.find('\n');
    partial_.append(bytes.substr(0, newline));
    if (newline != std::string_view::npos) {
      Emit(partial_, lines);
      partial_.clear();
      bytes.remove_prefix(newline + 1);
      continue;
    }
    while (partial_.size() > kLongestLine) {
      const size_t cut = CutAt(partial_, kLongestLine);
      Emit(std::string_view(partial_).substr(0, cut), lines);
      partial_.erase(0, cut);
    }
    return;
  }
}

void LinePrefixer::Finish(std::string* lines) {
  if (partial_.empty()) return;
  Emit(partial_, lines);
  partial_.clear();
}

// poll() promises room for this much in a pipe.
constexpr size_t kRoom = 4096;

Sink::Sink(int fd) : fd_(fd), at_once_(kRoom) {
  // A pipe or a terminal can be opened a second time, with flags of its own.
  struct stat info;
  if (::fstat(fd, &info) != 0) return;
  if (S_ISREG(info.st_mode)) at_once_ = kFull;
  if ((!S_ISFIFO(info.st_mode) && ::isatty(fd) == 0)) return;
  const std::string path = Format("/proc/self/fd/{}", fd);
  own_ = Descriptor(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!own_.open()) return;
  fd_ = own_.get();
  at_once_ = kFull;
}

void Sink::Add(std::string_view text) {
  if (error_ == 0) text_.append(text);
}

void Sink::Flush() {
  while (pending()) {
    pollfd polled{fd_, POLLOUT, 0};
    if (::poll(&polled, 1, 0) <= 0) break;
    const ssize_t written =
        ::write(fd_, text_.data() + at_, std::min(at_once_, text_.size() - at_));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (written < 0) {
      error_ = errno;
      at_ = text_.size();
      break;
    }
    at_ += static_cast<size_t>(written);
  }
  if (!pending()) {
    text_.clear();
    at_ = 0;
  } else if (at_ >= kFull) {
    text_.erase(0, at_);
    at_ = 0;
  }
}

Result<Descriptor> RankStream::Open(int rank, Sink* sink, const std::string& log) {
  if (!log.empty()) {
    Result<Descriptor> file = OpenLog(log);
    if (!file.ok() || sink == nullptr) return file;
    log_ = std::move(file).value();
  }
  if (sink == nullptr) return Descriptor();
  ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
  (void)::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  pipe_ = std::move(pipe.read);
  lines_ = std::make_unique<LinePrefixer>(Format("[{}] ", rank));
  sink_ = sink;
  return std::move(pipe.write);
}

void RankStream::Read() {
  char buffer[1 << 16];
  const ssize_t size = ::read(pipe_.get(), buffer, sizeof(buffer));
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) return Close();
  const std::string_view bytes(buffer, static_cast<size_t>(size));
  std::string lines;
  lines_->Add(bytes, &lines);
  sink_->Add(lines);
  if (!log_.open()) return;
  log_error_ = WriteAll(log_.get(), bytes);
  if (log_error_ != 0) log_.Close();
}

void RankStream::ReadRest() {
  // Bounded: a process that still holds the pipe may write for ever.
  constexpr int kMost = 32;
  for (int i = 0; i < kMost && pipe_.open(); ++i) {
    pollfd polled{pipe_.get(), POLLIN, 0};
    if (::poll(&polled, 1, 0) <= 0) return;
    Read();
  }
}

void RankStream::Close() {
  if (!pipe_.open()) return;
  std::string lines;
  lines_->Finish(&lines);
  sink_->Add(lines);
  pipe_.Close();
}

int RankStream::TakeLogError() { return std::exchange(log_error_, 0); }

}  // namespace diapason::launch
