#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/tick_clock.h"
#include "mpi_recorder/communicators.h"
#include "mpi_recorder/mpi_library.h"
#include "mpi_recorder/record_writer.h"

namespace diapason::mpi_recorder {

// The recorder of this process. It starts with MPI_Init or, in programs without it (sessions of
// MPI-4), with the first collective, if DIAPASON_MPI_RECORD names a file and the MPI library is one
// whose handles are known. It lives until the process ends; a child after fork() has none.
class Recorder {
 public:
  // Null: nothing is recorded. The first call may start it.
  static Recorder* Get() {
    Recorder* active = active_.load(std::memory_order_acquire);
    return active != nullptr || off_.load(std::memory_order_relaxed) ? active : Start();
  }
  // That which has been started; null: none.
  static Recorder* Started() { return active_.load(std::memory_order_acquire); }

  const MpiLibrary& library() const { return library_; }
  CommTable& comms() { return comms_; }
  RecordWriter& writer() { return *writer_; }
  const TickClock& clock() const { return clock_; }

  // The process ends: the file is closed, and says so if it could not be written.
  static void Stop();

 private:
  Recorder(MpiLibrary library, std::unique_ptr<RecordWriter> writer);
  static Recorder* Start();
  static void StartOnce();
  static void ForkedChild();

  static std::atomic<Recorder*> active_;
  static std::atomic<bool> off_;

  const MpiLibrary library_;
  const std::unique_ptr<RecordWriter> writer_;
  CommTable comms_;
  const TickClock& clock_;
};

}  // namespace diapason::mpi_recorder
