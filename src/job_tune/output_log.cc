#include "job_tune/output_log.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "base/printable.h"
#include "base/text.h"

namespace diapason::job_tune {
namespace {

constexpr size_t kLongestTail = 2048;

}  // namespace

Status OutputLog::Open(const std::string& path) {
  path_ = path;
  file_ = Descriptor(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644));
  if (file_.open()) return {};
  return IoError("the output of the command cannot be kept in '" + path + "': " + ErrnoText(errno) +
                 "; name another folder with -o");
}

void OutputLog::Add(std::string_view output) {
  tail_.append(output.substr(output.size() - std::min(output.size(), 2 * kLongestTail)));
  if (tail_.size() > 2 * kLongestTail) tail_.erase(0, tail_.size() - 2 * kLongestTail);
  Keep(output);
}

void OutputLog::Note(const std::string& line) {
  tail_.clear();
  Keep("[diapason: " + Printable(line) + "]\n");
}

void OutputLog::Keep(std::string_view text) {
  const size_t room = std::min(text.size(), half_ - head_);
  head_ += room;
  Write(text.substr(0, room));
  text.remove_prefix(room);
  if (text.empty()) return;
  // More than that in one piece would be written for nothing.
  if (text.size() > half_) {
    recent_.append(text.substr(0, text.size() - half_));
    Shorten();
    text.remove_prefix(text.size() - half_);
  }
  recent_ += text;
  Write(text);
  if (recent_.size() > 3 * half_) Shorten();
}

void OutputLog::Write(std::string_view text) {
  if (!status_.ok() || text.empty()) return;
  if (const int error = WriteAll(file_.get(), text); error != 0) {
    status_ = IoError("the log '" + path_ + "' is not complete: " + ErrnoText(error));
  }
}

void OutputLog::Shorten() {
  if (recent_.size() > half_) {
    left_out_ += recent_.size() - half_;
    recent_.erase(0, recent_.size() - half_);
  }
  if (::ftruncate(file_.get(), static_cast<off_t>(head_)) != 0 && status_.ok()) {
    status_ = IoError("the log '" + path_ + "' cannot be shortened: " + ErrnoText(errno));
  }
  if (left_out_ > 0) Write(Format("\n[diapason: {} bytes are left out here]\n", left_out_));
  Write(recent_);
}

void OutputLog::Finish() {
  if (recent_.size() > half_) Shorten();
  file_.Close();
}

std::string OutputLog::Tail(size_t lines) const {
  std::string_view text = tail_;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  size_t begin = text.size();
  for (size_t found = 0; begin > 0 && text.size() - begin < kLongestTail; --begin) {
    if (text[begin - 1] == '\n' && ++found == lines) break;
  }
  return PrintableLines(text.substr(begin));
}

}  // namespace diapason::job_tune
