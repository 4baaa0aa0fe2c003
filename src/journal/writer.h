#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/status.h"
#include "journal/drain_thread.h"
#include "journal/record.h"
#include "journal/ring.h"

namespace diapason::journal {

// The file that the process `pid` writes: %h is replaced by this host's name, %p by the process id
// and %% by a percent sign.
std::string ExpandPath(const std::string& pattern, const std::string& pid);

// An empty file that this process alone writes.
struct OwnFile {
  Descriptor descriptor;
  std::string path;
};
// Creates the file of ExpandPath(pattern), or empties it. If another process is writing it, the
// process id is added to the name. Only the user may read it, unless it is shared; the permissions
// of an existing file are restricted. Symbolic links are not followed, and a file that belongs to
// another user or has a second hard link is refused. An error says only the reason.
Result<OwnFile> OpenOwnFile(const std::string& pattern, bool shared);

// The journal of one process: a bounded ring that the decision path fills without waiting, and a
// thread that writes the records as lines of a file. A record that is lost is counted, and the
// count is written to the file.
//
// Add() may be called from any thread at any time. After fork() the child has no thread
// (drain_thread.h): its records are dropped, and Flush and Stop do nothing there.
class Journal {
 public:
  struct Options {
    std::string path;             // %h: host, %p: process id
    size_t records = 16384;       // in the ring
    uint64_t limit = 1ull << 30;  // bytes of the file
    bool shared = false;          // others may read it, as far as the umask permits
  };
  // Creates the file (OpenOwnFile) and starts the thread.
  static Result<std::unique_ptr<Journal>> Open(const Options& options);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // No allocation, lock or system call.
  void Add(const JournalRecord& record) noexcept {
    if (!ring_.Push(record)) dropped_.fetch_add(1, std::memory_order_relaxed);
  }
  // Not for the decision path: formats text and takes a lock. Numbers start from 1.
  void AddCommunicator(const JournalComm& communicator);

  // Waits, at most `limit`, until everything added before is in the file. Returns whether it is;
  // false also if writing has failed.
  bool Flush(std::chrono::milliseconds limit);
  // Flushes, closes the file, ends the thread.
  void Stop();

  // The actual file name.
  const std::string& path() const { return path_; }
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
  // Empty, or why writing has stopped.
  std::string failure();
  // Whether this object belongs to the calling process, and not to its parent before a fork.
  bool Mine() const { return thread_.Mine(); }

 private:
  Journal(Descriptor file, std::string path, const Options& options);
  // On the thread: moves the ring's records to the file.
  void Drain(bool last);
  void WriteAdded();
  // Everything taken so far is in the file, or lost.
  void NoteDrained();
  void Append(const std::string& line);
  void WriteBuffer();

  const std::string path_;
  const uint64_t limit_;
  Descriptor file_;
  Ring<JournalRecord> ring_;
  std::atomic<uint64_t> dropped_{0};

  // Guarded by the thread's mutex.
  std::vector<std::string> headlines_;  // communicator lines not yet in the file
  std::vector<Library> libraries_;      // by communicator number
  uint64_t headlines_added_ = 0;
  uint64_t headlines_drained_ = 0;
  uint64_t drained_ = 0;  // records written or dropped so far
  std::string failure_;

  // Used by the thread only.
  std::string buffer_;
  uint64_t written_bytes_ = 0;
  uint64_t dropped_written_ = 0;
  uint64_t popped_ = 0;
  uint64_t headlines_taken_ = 0;
  bool full_ = false;

  DrainThread thread_;  // last: it ends before what it uses
};

}  // namespace diapason::journal
