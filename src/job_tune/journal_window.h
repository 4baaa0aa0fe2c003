#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
  // are kept, and the first 4 MiB of questions about captured calls: there is one for a graph that
  // runs as long as the job. An error: it cannot be read.
  Status Read();
  uint64_t offset() const { return offset_; }  // in the file: what was read
  // Forgets the records so far; what describes the process and its communicators is kept.
  void Open();
  // The records of the window. An error: the journal has no first line yet.
  Result<journal::JournalContents> Contents() const;
  size_t bytes() const { return captured_.size() + lines_.size(); }

 private:
  void DropOldest();

  const std::string path_;
  uint64_t offset_ = 0;
  std::string partial_;   // a line without its end
  std::string head_;      // the lines about the process and its communicators
  std::string captured_;  // questions about captured calls, of the window
  std::string lines_;     // the others, of the window
};

// Whether any of these journals has a record yet.
bool HasRecords(const std::vector<std::string>& journals);

}  // namespace diapason::job_tune
