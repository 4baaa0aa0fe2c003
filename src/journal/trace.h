#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "journal/reader.h"

namespace diapason::journal {

// Writes journals as one trace for Perfetto and chrome://tracing (their JSON format): a process for
// each journal, and for each of its communicators a thread with the decisions, on the host's clock,
// and one with the runs on the GPU. Journals are written as they are added; only counters are kept.
//
// GPUs have their own clocks. A run's record is written after the run has ended, so the smallest
// difference between a record's time and its run's end, over a journal, is the offset from the
// GPU's clock to the host's, too large by the shortest delay with which a record was written.
//
// Times count from midnight, UTC, of the day before the first journal: a double then has nanosecond
// precision, and clock differences do not lead to negative times.
class TraceWriter {
 public:
  // Receives the text piece by piece.
  using Sink = std::function<Status(std::string_view)>;
  explicit TraceWriter(Sink sink) : sink_(std::move(sink)) {}

  Status Add(const std::string& name, const JournalContents& contents);
  // Called once, at the end; without it the text is not valid.
  Status Finish();
  uint64_t events() const { return events_; }

 private:
  class Journal;  // one of them on its way
  Status Event(const std::string& event);
  Status Flush();
  std::string Time(uint64_t time_ns) const;

  Sink sink_;
  std::string buffer_;
  uint64_t events_ = 0;
  uint64_t journals_ = 0;
  uint64_t base_ns_ = 0;
};

}  // namespace diapason::journal
