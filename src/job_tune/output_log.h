#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "base/status.h"

namespace diapason::job_tune {

// A file with the output of a command, of which the beginning and the end are kept, `half` bytes
// each, with a line between them that says how much was left out. While the output comes the file
// has what came last, and never more than four times `half` bytes and that line. Not thread-safe.
class OutputLog {
 public:
  explicit OutputLog(size_t half = size_t{1} << 20) : half_(half) {}
  // Creates or empties the file.
  Status Open(const std::string& path);

  void Add(std::string_view output);
  // A line of ours; what came before is no part of Tail().
  void Note(const std::string& line);
  void Finish();
  // The last lines of the output, printable: at most 2 KiB of them.
  std::string Tail(size_t lines) const;
  // Why the file is not complete; ok if it is. Nothing is written after the first error.
  const Status& status() const { return status_; }
  uint64_t left_out() const { return left_out_; }

 private:
  void Keep(std::string_view text);
  void Write(std::string_view text);
  // Leaves out everything between the beginning and the last `half_` bytes.
  void Shorten();

  size_t half_;
  std::string path_;
  Descriptor file_;
  size_t head_ = 0;     // bytes at the beginning of the file that stay
  std::string recent_;  // what was kept behind them
  std::string tail_;    // the end of the output alone
  uint64_t left_out_ = 0;
  Status status_;
};

}  // namespace diapason::job_tune
