#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "domain/mpi_calls.h"

// The recording of one process of an MPI program: what the preloaded recorder writes and `reader`
// reads. docs/formats/mpi-recording.md describes it.
//
// A file is a head, which is written again as the program runs, and blocks, which are appended. A
// process that is killed leaves a file whose last block may be cut.
namespace diapason::mpi_record {

inline constexpr char kMagic[8] = {'d', 'i', 'a', 'p', 'm', 'p', 'i', '\n'};
inline constexpr uint32_t kVersion = 1;
inline constexpr uint32_t kByteOrder = 0x01020304;

struct CallTotals {
  uint64_t calls = 0;
  uint64_t ns = 0;  // inside the calls
};

// Totals count every call, those too that the file has no room for.
struct FileHead {
  char magic[8] = {};
  uint32_t version = 0;
  uint32_t byte_order = 0;
  uint32_t head_bytes = 0;  // blocks begin here
  uint32_t call_bytes = 0;  // of a CallRecord
  uint32_t pid = 0;
  uint32_t calls_known = 0;  // entries of `totals` in use
  uint64_t loaded_ns = 0;    // since 1970: the recorder was loaded
  uint64_t init_ns = 0;      // MPI_Init had returned; 0: the program has not called it
  uint64_t finalize_ns = 0;  // MPI_Finalize was called
  uint64_t written_ns = 0;   // this head was written
  uint64_t dropped = 0;      // records that the buffer had no room for
  uint64_t over_limit = 0;   // records that the file had no room for
  uint32_t ended = 0;        // 1: the process ended in order
  uint32_t reserved = 0;
  std::array<CallTotals, 64> totals{};  // by MpiCall
};
static_assert(std::is_trivially_copyable_v<FileHead>);
static_assert(kMpiCallCount <= 64);

enum class BlockKind : uint32_t {
  kProcess = 1,       // text: lines of key=value
  kCommunicator = 2,  // CommBlock, then its name
  kCalls = 3,         // CallRecord, as many as there are
  kSite = 4,          // uint64_t address, then text: "solver+0x1234"
};
struct BlockHead {
  uint32_t kind = 0;
  uint32_t bytes = 0;  // that follow
};
inline constexpr uint32_t kLargestBlock = 1u << 24;

enum CommFlags : uint32_t { kInter = 1, kTopology = 2 };
struct CommBlock {
  uint32_t number = 0;  // from 1, within the process
  uint32_t ranks = 0;   // of the local group
  int32_t rank = -1;
  uint32_t remote_ranks = 0;  // of an intercommunicator
  uint32_t nodes = 0;         // 0: not known
  uint32_t flags = 0;
  uint64_t id = 0;  // of its members: alike on all of them
  uint64_t created_ns = 0;
  uint64_t ended_ns = 0;  // 0: it has not ended
};

enum CallFlags : uint8_t {
  kNotCommutative = 1,  // a reduction by an operation that is not commutative
  kFortran = 2,
};
struct CallRecord {
  uint64_t start_ns = 0;  // since 1970
  uint64_t duration_ns = 0;
  uint64_t bytes = 0;  // MpiCount
  uint64_t site = 0;   // the address that the call returns to
  uint32_t communicator = 0;
  uint32_t sequence = 0;    // of the calls on its communicator, from 1
  uint32_t type_bytes = 0;  // of one element; 0: no data
  uint8_t call = 0;         // MpiCall
  uint8_t flags = 0;
  uint16_t reserved = 0;
};
static_assert(sizeof(CallRecord) == 48 && std::is_trivially_copyable_v<CallRecord>);

}  // namespace diapason::mpi_record
