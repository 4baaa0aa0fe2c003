#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "journal/record.h"
#include "journal/ring.h"

namespace diapason::journal {

// The journal of one process: a bounded ring that the decision path fills without waiting, and a
// thread that turns records into lines of a file. Losing a record never costs the job anything: it
// is counted, and the count is written to the file.
//
// Add() may be called from any thread at any time. The thread takes no signals. After fork() the
// child has no such thread: its records are dropped, and Flush and Stop do nothing there.
class Journal {
 public:
  struct Options {
    std::string path;             // %h: host, %p: process id
    size_t records = 16384;       // in the ring
    uint64_t limit = 1ull << 30;  // bytes of the file
    bool shared = false;          // others may read it, as far as the umask lets them
  };
  // Creates the file and starts the thread. A file that another process is writing is left alone:
  // the process id is added to the name. Only the user may read the file, unless it is shared; a
  // file that is there and that others may read is closed to them. Links are not followed, and
  // what belongs to another user, or has a second name elsewhere, is refused.
  static Result<std::unique_ptr<Journal>> Open(const Options& options);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // No allocation, lock or system call.
  void Add(const JournalRecord& record) noexcept {
    if (!ring_.Push(record)) dropped_.fetch_add(1, std::memory_order_relaxed);
  }
  // Not for the decision path: formats and takes a lock. Numbers count from 1.
  void AddCommunicator(const JournalComm& communicator);

  // Waits until everything added before is in the file, at most this long. Returns whether it is;
  // false too once the file has stopped growing.
  bool Flush(std::chrono::milliseconds limit);
  // Flush, end the file, end the thread.
  void Stop();

  // The file's real name.
  const std::string& path() const { return path_; }
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
  // Empty, or why the file stopped growing.
  std::string failure();
  // Whether this object belongs to the calling process, and not to the one it was forked from.
  bool Mine() const;

 private:
  Journal(int fd, std::string path, const Options& options);
  static void* RunThread(void* self);
  void Run();
  // Moves what is in the ring to the file; called by the thread only.
  void Drain();
  // Everything taken so far is in the file, or lost: those who wait may go on.
  void TellDrained();
  void Append(const std::string& line);
  void WriteBuffer();

  const std::string path_;
  const uint64_t limit_;
  const pid_t owner_;
  int fd_;
  Ring<JournalRecord> ring_;
  std::atomic<uint64_t> dropped_{0};
  pthread_t thread_{};
  bool running_ = false;

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake_;  // against the monotonic clock
  pthread_cond_t drained_cond_;
  // Guarded by mutex_.
  std::vector<std::string> headlines_;  // communicator lines on their way to the file
  std::vector<Library> libraries_;      // by communicator number
  uint64_t headlines_added_ = 0;
  uint64_t headlines_drained_ = 0;
  uint64_t drained_ = 0;  // records written or refused so far
  bool flush_wanted_ = false;
  bool stop_wanted_ = false;
  bool finished_ = false;  // the thread has written its last
  std::string failure_;

  // The thread's own.
  std::string buffer_;
  uint64_t written_bytes_ = 0;
  uint64_t dropped_written_ = 0;
  uint64_t popped_ = 0;
  uint64_t headlines_taken_ = 0;
  bool full_ = false;
};

}  // namespace diapason::journal
