#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "domain/vocabulary.h"

// The collectives of MPI-3: one table for their names, for what a tuner can do about them, and for
// the functions of the recorder that stand before MPI's own.
//
// A row is ROW(Name, name, NAME, words, count, rules): MPI_Name in C, mpi_name_ and NAME in
// Fortran; the number of arguments in C, of which the communicator is the last; how the bytes of a
// call count (MpiCount); who can change its algorithm (MpiRules). Each has a non-blocking form,
// MPI_Iname, with a request as one more argument.
//
// Numbers follow from the order and are part of files: rows are appended, never moved.
#define DIAPASON_MPI_CALLS(ROW)                                                                 \
  ROW(Barrier, barrier, BARRIER, 1, kNothing, kOpenMpiOnly)                                     \
  ROW(Bcast, bcast, BCAST, 5, kBuffer, kTuned)                                                  \
  ROW(Gather, gather, GATHER, 8, kGather, kOpenMpiOnly)                                         \
  ROW(Gatherv, gatherv, GATHERV, 9, kGatherv, kNone)                                            \
  ROW(Scatter, scatter, SCATTER, 8, kScatter, kOpenMpiOnly)                                     \
  ROW(Scatterv, scatterv, SCATTERV, 9, kScatterv, kNone)                                        \
  ROW(Allgather, allgather, ALLGATHER, 7, kEach, kTuned)                                        \
  ROW(Allgatherv, allgatherv, ALLGATHERV, 8, kEachv, kOpenMpiOnly)                              \
  ROW(Alltoall, alltoall, ALLTOALL, 7, kEach, kTuned)                                           \
  ROW(Alltoallv, alltoallv, ALLTOALLV, 9, kAlltoallv, kOpenMpiOnly)                             \
  ROW(Alltoallw, alltoallw, ALLTOALLW, 9, kAlltoallw, kNone)                                    \
  ROW(Reduce, reduce, REDUCE, 7, kReduction, kTuned)                                            \
  ROW(Allreduce, allreduce, ALLREDUCE, 6, kReduction, kTuned)                                   \
  ROW(Reduce_scatter, reduce_scatter, REDUCE_SCATTER, 6, kReduceScatter, kTuned)                \
  ROW(Reduce_scatter_block, reduce_scatter_block, REDUCE_SCATTER_BLOCK, 6, kReduceScatterBlock, \
      kOpenMpiOnly)                                                                             \
  ROW(Scan, scan, SCAN, 6, kReduction, kOpenMpiOnly)                                            \
  ROW(Exscan, exscan, EXSCAN, 6, kReduction, kOpenMpiOnly)                                      \
  ROW(Neighbor_allgather, neighbor_allgather, NEIGHBOR_ALLGATHER, 7, kEachNeighbor, kNone)      \
  ROW(Neighbor_allgatherv, neighbor_allgatherv, NEIGHBOR_ALLGATHERV, 8, kEachNeighborv, kNone)  \
  ROW(Neighbor_alltoall, neighbor_alltoall, NEIGHBOR_ALLTOALL, 7, kEachNeighbor, kNone)         \
  ROW(Neighbor_alltoallv, neighbor_alltoallv, NEIGHBOR_ALLTOALLV, 9, kNeighborAlltoallv, kNone) \
  ROW(Neighbor_alltoallw, neighbor_alltoallw, NEIGHBOR_ALLTOALLW, 9, kNeighborAlltoallw, kNone)

namespace diapason {

// How the bytes of a call count: as Open MPI's rules count them, which is all that a communicator
// moves where every rank gives the same amount. Sides that MPI_IN_PLACE or the root make
// insignificant are not read.
enum class MpiCount : uint8_t {
  kNothing,
  kBuffer,              // one buffer: arguments 1 and 2
  kReduction,           // arguments 2 and 3, and the operation
  kReduceScatter,       // the sum of all counts
  kReduceScatterBlock,  // one block for each rank
  kEach,                // what is received, from each rank
  kEachv,               // what is received
  kGather,              // one block for each rank
  kScatter,             // the same
  kGatherv,             // at the root what is received, elsewhere what is sent
  kScatterv,            // at the root what is sent, elsewhere what is received
  kAlltoallv,           // what is received
  kAlltoallw,           // what is received
  kEachNeighbor,        // what is received, from each neighbour
  kEachNeighborv,       // what is received
  kNeighborAlltoallv,   // what is received
  kNeighborAlltoallw,   // what is received
};

// Who can change the algorithm of a call.
enum class MpiRules : uint8_t {
  kNone,         // Open MPI has one algorithm, or no rules for it
  kOpenMpiOnly,  // Open MPI's rules know it; diapason does not search its algorithms
  kTuned,        // diapason searches its algorithms and writes rules for it
};

// A call of the table: twice the row's number, and 1 more for its non-blocking form.
enum class MpiCall : uint8_t {
#define DIAPASON_ROW(Name, name, NAME, words, count, rules) k##Name, kI##name,
  DIAPASON_MPI_CALLS(DIAPASON_ROW)
#undef DIAPASON_ROW
};

struct MpiCallFacts {
  std::string_view name;  // "MPI_Allreduce"
  std::string_view word;  // "allreduce", "iallreduce": in tables and JSON
  MpiCount count;
  MpiRules rules;  // of a non-blocking call: kNone
  bool blocking;
};

inline constexpr std::array kMpiCalls = std::to_array<MpiCallFacts>({
#define DIAPASON_ROW(Name, name, NAME, words, count, rules)      \
  {"MPI_" #Name, #name, MpiCount::count, MpiRules::rules, true}, \
      {"MPI_I" #name, "i" #name, MpiCount::count, MpiRules::kNone, false},
    DIAPASON_MPI_CALLS(DIAPASON_ROW)
#undef DIAPASON_ROW
});
inline constexpr size_t kMpiCallCount = kMpiCalls.size();

inline const MpiCallFacts& FactsOf(MpiCall call) { return kMpiCalls[static_cast<size_t>(call)]; }

// What policies call the algorithms of a call that diapason can tune; none: it cannot.
std::optional<Collective> CollectiveOf(MpiCall call);

// Journals number the collectives of policies (Collective). MPI's other calls follow from here on.
inline constexpr uint8_t kFirstMpiCode = 64;
static_assert(kFirstMpiCode + kMpiCallCount <= 250);
// The number of a call: its Collective, or kFirstMpiCode and its place in the table.
uint8_t CodeOf(MpiCall call);
// The call of a number from kFirstMpiCode on; none: it is a Collective, or not a number of ours.
std::optional<MpiCall> MpiCallOf(uint8_t code);
// "allreduce", "iallreduce", "barrier"; "?" for a number without a name.
std::string_view CodeName(uint8_t code);

}  // namespace diapason
