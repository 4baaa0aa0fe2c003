#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/descriptor.h"
#include "base/environment.h"
#include "base/root_fs.h"
#include "journal/learning.h"
#include "journal/reader.h"

namespace diapason::watch {

// The journal of the plugin in a process: DIAPASON_JOURNAL of its environment with %h and %p
// expanded as the plugin does, or with the process id appended if another process had the file
// first. "" if there is none. A relative name is relative to the process's working directory.
std::string JournalOf(const RootFs& tree, pid_t pid, const Environment& environment);

// Follows a journal while it is written: reads only new data, with bounded memory for any file
// size. A file that was replaced or truncated is read from its beginning.
class JournalTail {
 public:
  explicit JournalTail(std::string path) : path_(std::move(path)) {}
  JournalTail(const JournalTail&) = delete;
  JournalTail& operator=(const JournalTail&) = delete;

  // Since the start of the file.
  struct Counts {
    uint64_t decisions = 0;
    uint64_t runs = 0;
    uint64_t bypassed = 0;
    uint64_t rewards = 0;
    uint64_t dropped = 0;   // records the plugin dropped
    uint64_t unknown = 0;   // lines that could not be parsed
    uint64_t restarts = 0;  // how often the file was replaced or truncated
    bool ended = false;

    // Collectives: the runs if they are recorded, else decisions plus calls that bypassed the
    // tuner.
    uint64_t operations() const {
      return runs > decisions + bypassed ? runs : decisions + bypassed;
    }
  };

  // The latest data for one collective in one size band of one communicator.
  struct Context {
    uint32_t communicator = 0;
    std::string collective;
    uint64_t bytes = 0;  // of the last call
    uint64_t calls = 0;  // among the fully parsed lines
    std::string asked;   // "tree/simple"
    std::string ran;     // "" if it is not recorded
    std::string why;
    double seconds = 0;  // the last run's duration; 0: not measured
  };

  // Reads new data, at most some megabytes in full; of the rest it only counts lines. False if
  // there is no such file, or it is not a journal.
  bool Poll();

  const std::string& path() const { return path_; }
  const Counts& counts() const { return counts_; }
  const std::string& problem() const { return problem_; }  // why Poll() is false
  // Busiest first.
  std::vector<Context> Contexts() const;
  // The state of the job's learning, from the last rewards and decisions.
  std::vector<journal::JournalContext> Learning() const;
  Library LibraryOf(uint32_t communicator) const;

 private:
  using Key = std::tuple<uint32_t, uint8_t, int>;

  bool Reopen();
  void Forget();
  void Block(std::string_view text, bool in_full);
  void Line(std::string_view line, bool in_full);
  void TakeCommunicator(std::string_view line);
  void TakePending();
  void TakeRecord(const journal::JournalRecord& record, Library library);

  const std::string path_;
  Descriptor fd_;
  uint64_t device_ = 0;
  uint64_t inode_ = 0;
  uint64_t offset_ = 0;
  std::string rest_;            // an incomplete line
  bool skipping_line_ = false;  // one that is too long
  bool first_line_ = true;
  std::string head_;     // the file's first line
  std::string pending_;  // lines to parse in full
  std::map<uint32_t, std::string> communicator_lines_;
  Counts counts_;
  std::string problem_;
  std::map<Key, Context> contexts_;
  std::map<Key, journal::JournalRecord> settled_;  // the last decision that did not explore
  std::map<Key, journal::JournalRecord> trying_;   // the last that did
  std::deque<journal::JournalRecord> rewards_;
  std::map<uint32_t, journal::JournalComm> communicators_;
};

}  // namespace diapason::watch
