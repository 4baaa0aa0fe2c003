#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/status.h"
#include "journal/record.h"
#include "journal/ring.h"

namespace diapason::journal {

// The file that the process `pid` writes: %h is replaced by this host's name, %p by the process id
// and %% by a percent sign.
std::string ExpandPath(const std::string& pattern, const std::string& pid);

// The journal of one process: a bounded ring that the decision path fills without waiting, and a
// thread that writes the records as lines of a file. A record that is lost is counted, and the
// count is written to the file.
//
// Add() may be called from any thread at any time. The thread blocks all signals. After fork() the
// child has no such thread: its records are dropped, and Flush and Stop do nothing there.
class Journal {
 public:
  struct Options {
    std::string path;             // %h: host, %p: process id
    size_t records = 16384;       // in the ring
    uint64_t limit = 1ull << 30;  // bytes of the file
    bool shared = false;          // others may read it, as far as the umask permits
  };
  // Creates the file and starts the thread. If another process is writing the file, the process id
  // is added to the name. Only the user may read the file, unless it is shared; the permissions of
  // an existing file are restricted. Symbolic links are not followed, and a file that belongs to
  // another user or has a second hard link is refused.
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
  bool Mine() const;

 private:
  Journal(Descriptor file, std::string path, const Options& options);
  static void* RunThread(void* self);
  void Run();
  // Moves the ring's records to the file; called by the thread only.
  void Drain();
  // Everything taken so far is in the file, or lost: wakes the waiting callers.
  void TellDrained();
  void Append(const std::string& line);
  void WriteBuffer();

  const std::string path_;
  const uint64_t limit_;
  const pid_t owner_;
  Descriptor file_;
  Ring<JournalRecord> ring_;
  std::atomic<uint64_t> dropped_{0};
  pthread_t thread_{};
  bool running_ = false;

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake_;  // against the monotonic clock
  pthread_cond_t drained_cond_;
  // Guarded by mutex_.
  std::vector<std::string> headlines_;  // communicator lines not yet in the file
  std::vector<Library> libraries_;      // by communicator number
  uint64_t headlines_added_ = 0;
  uint64_t headlines_drained_ = 0;
  uint64_t drained_ = 0;  // records written or dropped so far
  bool flush_wanted_ = false;
  bool stop_wanted_ = false;
  bool finished_ = false;  // the thread has written its last line
  std::string failure_;

  // Used by the thread only.
  std::string buffer_;
  uint64_t written_bytes_ = 0;
  uint64_t dropped_written_ = 0;
  uint64_t popped_ = 0;
  uint64_t headlines_taken_ = 0;
  bool full_ = false;
};

}  // namespace diapason::journal
