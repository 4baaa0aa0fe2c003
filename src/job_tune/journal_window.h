#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "journal/reader.h"

namespace diapason::job_tune {

// Follows a journal while a job writes it, and gives the records that were added since the window
// was opened last. Only whole lines count. Not thread-safe.
class JournalWindow {
 public:
  explicit JournalWindow(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  // Takes what was added to the file, at most 64 MiB at a time; of the records the newest 16 MiB
  // are kept. An error: it cannot be read.
  Status Read();
  uint64_t offset() const { return offset_; }  // in the file: what was read
  // Forgets the records so far; what describes the process and its communicators is kept.
  void Open();
  // The records of the window. An error: the journal has no first line yet.
  Result<journal::JournalContents> Contents() const;
  size_t bytes() const { return lines_.size(); }

 private:
  const std::string path_;
  uint64_t offset_ = 0;
  std::string partial_;  // a line without its end
  std::string head_;     // the lines about the process and its communicators
  std::string lines_;    // the others, of the window
  void DropOldest();
};

}  // namespace diapason::job_tune
