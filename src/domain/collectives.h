#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "diapason/comm.h"
#include "domain/vocabulary.h"

namespace diapason {

// How much a buffer of a call holds: Call::count elements, or as many for every rank.
enum class Extent : uint8_t { kNothing, kCount, kAllRanks };
// What Call::peer is: unused, where the data comes from, or where it goes to.
enum class Peer : uint8_t { kNone, kFrom, kTo };

// What an operation of comm.h is, and what others call it. The only place where Operation and
// Collective are translated into each other.
struct OperationFacts {
  Operation operation;
  std::optional<Collective> collective;  // what policies and tuners know; none: no choice
  const char* name;                      // "all_reduce", in comm.h
  const char* measured;  // "allreduce", in files and on the command line; "": it is not measured
  const char* aliases;   // other spellings, beyond case, '_' and '-': separated by blanks
  const char* tests;     // nccl-tests' program, without "_perf"
  const char* nccl;      // in the events of NCCL's profilers; "": NCCL asks no tuner about it
  const char* mpi;       // MPI's function; "": coll_tuned does not choose
  int openmpi;           // its number in coll_tuned's rules files, the same from 4.0 to 5.0
  bool reduces;
  Peer peer;
  Extent in;
  Extent out;
  // How often the bytes of a call pass every link of a ring, in parts of one rank each; 0: once, as
  // a whole.
  int passes;
};

// One row for each operation, in the order in which help lists them.
inline constexpr std::array<OperationFacts, kOperationCount> kOperations{{
    {Operation::kAllReduce, Collective::kAllReduce, "all_reduce", "allreduce", "", "all_reduce",
     "AllReduce", "MPI_Allreduce", 2, true, Peer::kNone, Extent::kCount, Extent::kCount, 2},
    {Operation::kAllGather, Collective::kAllGather, "all_gather", "allgather", "", "all_gather",
     "AllGather", "MPI_Allgather", 0, false, Peer::kNone, Extent::kCount, Extent::kAllRanks, 1},
    {Operation::kReduceScatter, Collective::kReduceScatter, "reduce_scatter", "reducescatter", "",
     "reduce_scatter", "ReduceScatter", "MPI_Reduce_scatter", 12, true, Peer::kNone,
     Extent::kAllRanks, Extent::kCount, 1},
    {Operation::kBroadcast, Collective::kBroadcast, "broadcast", "broadcast", "bcast", "broadcast",
     "Broadcast", "MPI_Bcast", 7, false, Peer::kFrom, Extent::kCount, Extent::kCount, 0},
    {Operation::kReduce, Collective::kReduce, "reduce", "reduce", "", "reduce", "Reduce",
     "MPI_Reduce", 11, true, Peer::kTo, Extent::kCount, Extent::kCount, 0},
    {Operation::kAllToAll, Collective::kAllToAll, "all_to_all", "alltoall", "", "alltoall", "",
     "MPI_Alltoall", 3, false, Peer::kNone, Extent::kAllRanks, Extent::kAllRanks, 1},
    {Operation::kSend, std::nullopt, "send", "sendrecv", "", "sendrecv", "", "", -1, false,
     Peer::kTo, Extent::kCount, Extent::kNothing, 0},
    {Operation::kRecv, std::nullopt, "recv", "", "", "", "", "", -1, false, Peer::kFrom,
     Extent::kNothing, Extent::kCount, 0},
    {Operation::kBarrier, std::nullopt, "barrier", "", "", "", "", "", -1, false, Peer::kNone,
     Extent::kNothing, Extent::kNothing, 0},
}};

inline constexpr auto kRowOfOperation = [] {
  std::array<uint8_t, kOperationCount> rows{};
  for (uint8_t i = 0; i < kOperationCount; ++i) {
    rows.at(static_cast<size_t>(kOperations[i].operation)) = i;
  }
  return rows;
}();
inline constexpr auto kOperationOfCollective = [] {
  std::array<Operation, kCollectiveCount> operations{};
  for (const OperationFacts& facts : kOperations) {
    if (facts.collective) {
      operations.at(static_cast<size_t>(*facts.collective)) = facts.operation;
    }
  }
  return operations;
}();

// The argument has to be one of the enum's values.
inline const OperationFacts& FactsOf(Operation operation) {
  return kOperations[kRowOfOperation[static_cast<size_t>(operation)]];
}
inline Operation OperationOf(Collective collective) {
  return kOperationOfCollective[static_cast<size_t>(collective)];
}
inline const OperationFacts& FactsOf(Collective collective) {
  return FactsOf(OperationOf(collective));
}
// By the name that files have; null if it is not one.
const OperationFacts* FindMeasured(std::string_view name);

inline std::optional<Collective> CollectiveOf(Operation operation) {
  return FactsOf(operation).collective;
}
// The collective whose names an operation's configurations have; send and recv have none to name.
inline Collective NamesOf(Operation operation) {
  return CollectiveOf(operation).value_or(Collective::kAllReduce);
}

inline bool Reduces(Operation operation) { return FactsOf(operation).reduces; }
inline bool HasPeer(Operation operation) {
  return FactsOf(operation).peer != Peer::kNone && !CollectiveOf(operation);
}
inline bool HasRoot(Operation operation) {
  return FactsOf(operation).peer != Peer::kNone && !HasPeer(operation);
}
// Whether nccl-tests counts the bytes of all ranks together.
inline bool CountsAllRanks(Operation operation) {
  const OperationFacts& facts = FactsOf(operation);
  return facts.in == Extent::kAllRanks || facts.out == Extent::kAllRanks;
}
// Whether one buffer can be the input and the output.
inline bool HasInPlace(Operation operation) {
  const OperationFacts& facts = FactsOf(operation);
  return facts.in != Extent::kNothing && facts.out != Extent::kNothing &&
         (facts.in == Extent::kCount || facts.out == Extent::kCount);
}
inline size_t Elements(Extent extent, size_t count, int ranks) {
  return extent == Extent::kNothing    ? 0
         : extent == Extent::kAllRanks ? count * static_cast<size_t>(ranks)
                                       : count;
}

// Bus bandwidth factor of nccl-tests. algbw is bytes over time; busbw is algbw times this factor:
// the fraction of the bytes that one link carries in the best algorithm, so that busbw compares
// with the link's peak for every collective and number of ranks.
inline double BusFactor(int passes, int ranks) {
  const double n = ranks;
  return passes == 0 ? 1 : passes * (n - 1) / n;
}
inline double BusFactor(Operation operation, int ranks) {
  return BusFactor(FactsOf(operation).passes, ranks);
}
inline double BusFactor(Collective collective, int ranks) {
  return BusFactor(OperationOf(collective), ranks);
}

// A collective for which nccl-tests and rccl-tests have a program.
struct TestedCollective {
  std::string_view name;     // "allgather"
  std::string_view program;  // "all_gather"
  int passes;
};
// Those that are measured here, and those that only files of others have. A name that contains
// another one comes before it.
std::span<const TestedCollective> TestedCollectives();

}  // namespace diapason
