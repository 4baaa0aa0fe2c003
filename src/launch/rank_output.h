#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "base/status.h"

namespace diapason::launch {

// Cuts what one rank writes into whole lines and puts a prefix before each.
class LinePrefixer {
 public:
  // A longer line is shown as several.
  static constexpr size_t kLongestLine = 64 * 1024;

  explicit LinePrefixer(std::string prefix) : prefix_(std::move(prefix)) {}

  // Appends to `*lines` every line that `bytes` completes.
  void Add(std::string_view bytes, std::string* lines);
  // Appends the last line, if it had no newline.
  void Finish(std::string* lines);

 private:
  void Emit(std::string_view line, std::string* lines);

  std::string prefix_;
  std::string partial_;
};

// One of the launcher's own outputs. What its reader does not take yet is kept, so that a reader
// that pauses never keeps the launcher from watching the ranks.
class Sink {
 public:
  // From here on, writers to the sink should wait.
  static constexpr size_t kFull = 1024 * 1024;

  // `fd` stays open and its flags, which others share, stay as they are.
  explicit Sink(int fd);
  int fd() const { return fd_; }
  bool pending() const { return at_ < text_.size(); }
  bool full() const { return text_.size() - at_ >= kFull; }
  // The errno of a write that failed, or 0. After it everything is dropped.
  int error() const { return error_; }

  void Add(std::string_view text);
  // Writes what the reader takes without waiting.
  void Flush();

 private:
  int fd_;
  Descriptor own_;  // the same file with flags of its own
  size_t at_once_;
  std::string text_;
  size_t at_ = 0;
  int error_ = 0;
};

// One output of one rank.
class RankStream {
 public:
  // Returns the descriptor for the rank; -1 when it is to use the launcher's own. With a `sink`
  // (kept, not owned) the launcher reads and shows what the rank writes, and copies it to the file
  // `log`; without one the rank writes there itself. "" is no file.
  Result<Descriptor> Open(int rank, Sink* sink, const std::string& log);

  int fd() const { return pipe_.get(); }
  const Sink* sink() const { return sink_; }
  bool WantsReading() const { return pipe_.open() && !sink_->full(); }
  // Once, without waiting. Closes at the end of the stream.
  void Read();
  // What is there now.
  void ReadRest();
  // Shows a last line without a newline.
  void Close();
  // Once, the errno with which the file could not be written; else 0.
  int TakeLogError();

 private:
  Descriptor pipe_;
  Descriptor log_;
  int log_error_ = 0;
  std::unique_ptr<LinePrefixer> lines_;
  Sink* sink_ = nullptr;
};

}  // namespace diapason::launch
