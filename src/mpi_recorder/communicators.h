#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mpi_record/format.h"
#include "mpi_recorder/mpi_library.h"

namespace diapason::mpi_recorder {

// What the recorder has to know of a communicator while the program uses it.
struct Comm {
  uint32_t number = 0;
  int rank = 0;
  bool inter = false;
  uint32_t ranks = 0;    // of the local group
  uint32_t others = 0;   // with which a call exchanges data: the same, or those of the remote group
  uint32_t sources = 0;  // neighbours that it receives from
  std::atomic<uint32_t> calls{0};
  uint64_t id = 0;
  uint64_t created_ns = 0;
};

// The communicators that the program has used, by handle. Find() neither locks nor allocates and
// may be called from any thread. A communicator is described when it is first used, and forgotten
// when MPI frees it (an attribute's delete function says so), because its handle may come again.
class CommTable {
 public:
  // `describe` gets a communicator when it is first used and, with ended_ns, when it is freed. It
  // is called with the table locked.
  using Describe = std::function<void(const mpi_record::CommBlock& comm, const std::string& name)>;
  // `library` has to outlive the table, as the table has to outlive MPI.
  CommTable(const MpiLibrary* library, Describe describe);
  CommTable(const CommTable&) = delete;
  CommTable& operator=(const CommTable&) = delete;

  // The communicator; null: it is MPI_COMM_NULL, or there are too many.
  Comm* Find(Word handle) {
    for (size_t i = Slot(handle), seen = 0; seen < kMostProbes; i = (i + 1) % kSlots, ++seen) {
      const Word key = slots_[i].key.load(std::memory_order_acquire);
      if (key == handle) return slots_[i].comm.load(std::memory_order_relaxed);
      if (key == kEmpty) break;
    }
    return Add(handle);
  }
  // Called by MPI when it frees a communicator.
  void Remove(Word handle);

 private:
  static constexpr size_t kSlots = 16384;
  static constexpr size_t kMostProbes = 64;
  static constexpr Word kEmpty = 0;
  static constexpr Word kRemoved = ~Word{0};
  struct Entry {
    std::atomic<Word> key{kEmpty};
    std::atomic<Comm*> comm{nullptr};
  };

  static size_t Slot(Word handle) { return (handle * 0x9e3779b97f4a7c15u) >> 50; }
  Comm* Add(Word handle);
  // Called with the table locked.
  Comm* Insert(const Comm& learned, Entry* place, Word handle, mpi_record::CommBlock* block,
               const std::string& name);
  void Learn(Word handle, Comm* comm, mpi_record::CommBlock* block, std::string* name) const;
  uint32_t Sources(Word handle, int rank) const;
  uint64_t MembersId(Word handle, int ranks) const;

  const MpiLibrary& library_;
  const Describe describe_;
  int keyval_ = -1;
  uint32_t nodes_ = 0;  // of the job; 0: not known
  std::array<Entry, kSlots> slots_{};
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  // Guarded by mutex_.
  std::vector<std::unique_ptr<Comm>> all_;
  std::vector<Comm*> free_;
  uint32_t numbers_ = 0;
};

// The number of nodes of a job by what its launcher says; 0: it does not say.
uint32_t NodesOfJob(const std::function<const char*(const char*)>& get);

}  // namespace diapason::mpi_recorder
