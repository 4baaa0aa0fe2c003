#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/descriptor.h"
#include "base/status.h"
#include "base/tick_clock.h"
#include "journal/drain_thread.h"
#include "journal/ring.h"
#include "mpi_record/format.h"

namespace diapason::mpi_recorder {

// The recording of one process: a bounded ring that the program's threads fill without waiting, and
// a thread that writes it to a file every few milliseconds, so that a process that is killed leaves
// what it did until then. What does not fit is counted. After fork() the child has no such thread,
// and nothing here does anything in it.
class RecordWriter {
 public:
  struct Options {
    std::string path;             // %h: host, %p: process id
    size_t records = 16384;       // in the ring
    uint64_t limit = 1ull << 26;  // bytes of the file; totals are kept beyond it
    bool shared = false;          // others may read it, as far as the umask permits
    std::string process;          // lines of key=value
    uint64_t loaded_ns = 0;
  };
  // Creates the file, as a journal is created (journal/writer.h), and starts the thread.
  static Result<std::unique_ptr<RecordWriter>> Open(const Options& options);
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  // `start_ns` and `duration_ns` of the record are ticks of TickClock. Any thread; no allocation,
  // lock or system call.
  void Add(const mpi_record::CallRecord& record) noexcept {
    if (!ring_.Push(record)) dropped_.fetch_add(1, std::memory_order_relaxed);
  }
  // Before the first record of a communicator, and after its last.
  void AddCommunicator(const mpi_record::CommBlock& comm, const std::string& name);
  void MarkInit();
  void MarkFinalize();

  // Waits, at most `limit`, until everything added before is in the file.
  bool Flush(std::chrono::milliseconds limit);
  // Flushes, marks the file as ended, ends the thread; waits at most two seconds.
  void Stop();

  const std::string& path() const { return path_; }
  // Empty, or why writing has stopped. A file that has reached its limit is no failure.
  std::string failure();
  bool Mine() const { return thread_.Mine(); }

 private:
  RecordWriter(Descriptor file, std::string path, const Options& options);
  // On the thread: moves the ring's records to the file.
  void Drain(bool last);
  void WriteAdded();
  void Count(const mpi_record::CallRecord& record);
  void AppendSite(uint64_t address);
  void AppendCalls();
  bool AppendBlock(mpi_record::BlockKind kind, const void* first, size_t first_bytes,
                   std::string_view rest);
  void WriteOut();
  void WriteHead();
  void Fail(int error);

  const std::string path_;
  const uint64_t limit_;
  Descriptor file_;
  journal::Ring<mpi_record::CallRecord> ring_;
  std::atomic<uint64_t> dropped_{0};
  std::atomic<uint64_t> init_ns_{0};
  std::atomic<uint64_t> finalize_ns_{0};

  // A moment on both clocks.
  const uint64_t base_ticks_;
  const uint64_t base_ns_;

  // Guarded by the thread's mutex.
  std::vector<std::string> comms_;  // payloads of blocks that are not in the file yet
  uint64_t comms_added_ = 0;
  uint64_t comms_drained_ = 0;
  uint64_t drained_ = 0;
  std::string failure_;

  // Used by the thread only.
  mpi_record::FileHead head_;
  std::string buffer_;
  std::vector<mpi_record::CallRecord> calls_;
  std::unordered_set<uint64_t> sites_;
  uint64_t written_ = 0;
  uint64_t popped_ = 0;
  uint64_t comms_taken_ = 0;
  bool broken_ = false;

  journal::DrainThread thread_;  // last: it ends before what it uses
};

// Where an address is: "solver+0x1234", by the file that is mapped there; "" if there is none.
std::string SiteText(uint64_t address);

}  // namespace diapason::mpi_recorder
