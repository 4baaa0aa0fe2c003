#pragma once

#include <cstdint>

#include "domain/mpi_calls.h"
#include "mpi_record/format.h"
#include "mpi_recorder/communicators.h"
#include "mpi_recorder/mpi_library.h"

// How much data a call moves, by its arguments. Arguments that the standard calls insignificant are
// not read: the send side under MPI_IN_PLACE, the receive side away from the root, types where the
// count is 0.
namespace diapason::mpi_recorder {

// Arguments as C passes them.
struct CBinding {
  static constexpr uint8_t kFlags = 0;
  static int Int(Word word) { return IntOf(word); }
  static Word Comm(const MpiLibrary& library, Word word) { return library.Handle(word); }
  static Word Type(const MpiLibrary& library, Word word) { return library.Handle(word); }
  static Word Op(const MpiLibrary& library, Word word) { return library.Handle(word); }
  static Word TypeAt(const MpiLibrary& library, Word types, uint32_t i) {
    return library.abi.int_handles ? reinterpret_cast<const uint32_t*>(types)[i]
                                   : reinterpret_cast<const Word*>(types)[i];
  }
};

// Arguments as Fortran passes them: by reference, handles as integers.
struct FortranBinding {
  static constexpr uint8_t kFlags = mpi_record::kFortran;
  static int Int(Word word) { return *reinterpret_cast<const int*>(word); }
  static Word Comm(const MpiLibrary& library, Word word) {
    return library.CommOfFortran(Int(word));
  }
  static Word Type(const MpiLibrary& library, Word word) {
    return library.TypeOfFortran(Int(word));
  }
  static Word Op(const MpiLibrary& library, Word word) { return library.OpOfFortran(Int(word)); }
  static Word TypeAt(const MpiLibrary& library, Word types, uint32_t i) {
    return library.TypeOfFortran(reinterpret_cast<const int*>(types)[i]);
  }
};

struct Amount {
  uint64_t bytes = 0;
  uint32_t type_bytes = 0;
};

inline Amount AmountOf(const MpiLibrary& library, int64_t count, Word type) {
  int size = 0;
  if (count <= 0 || type == library.abi.type_null ||
      library.functions.type_size(type, &size) != 0 || size <= 0) {
    return {};
  }
  return {static_cast<uint64_t>(count) * static_cast<uint64_t>(size), static_cast<uint32_t>(size)};
}

inline int64_t SumOf(Word counts, uint32_t length) {
  const auto* each = reinterpret_cast<const int*>(counts);
  int64_t sum = 0;
  for (uint32_t i = 0; each != nullptr && i < length; ++i) sum += each[i];
  return sum;
}

inline Amount Times(Amount amount, uint32_t factor) {
  amount.bytes *= factor;
  return amount;
}

// What a rank has to do with the root: it is the root, it is not, or, beside the root of an
// intercommunicator, it has no part.
enum class Part : uint8_t { kRoot, kOther, kNone };
inline Part PartOf(const MpiLibrary& library, const Comm& comm, int root) {
  if (!comm.inter) return root == comm.rank ? Part::kRoot : Part::kOther;
  if (root == library.abi.root) return Part::kRoot;
  return root >= 0 ? Part::kOther : Part::kNone;
}

template <typename B>
Amount SumTypes(const MpiLibrary& library, Word counts, Word types, uint32_t length) {
  const auto* each = reinterpret_cast<const int*>(counts);
  Amount sum;
  for (uint32_t i = 0; each != nullptr && i < length; ++i) {
    if (each[i] <= 0) continue;  // its type need not be one
    const Amount one = AmountOf(library, each[i], B::TypeAt(library, types, i));
    sum.bytes += one.bytes;
    sum.type_bytes = one.type_bytes;
  }
  return sum;
}

// Gather, gatherv, scatter, scatterv: `a` are the arguments.
template <typename B, MpiCount kCount>
Amount RootedAmount(const MpiLibrary& library, const Comm& comm, const Word* a) {
  constexpr bool kVaries = kCount == MpiCount::kGatherv || kCount == MpiCount::kScatterv;
  constexpr bool kCollects = kCount == MpiCount::kGather || kCount == MpiCount::kGatherv;
  const Part part = PartOf(library, comm, B::Int(a[kVaries ? 7 : 6]));
  if (part == Part::kNone) return {};
  const bool sends = kCollects != (part == Part::kRoot);
  if constexpr (!kVaries) {
    const int at = sends ? 1 : 4;
    const Amount block = AmountOf(library, B::Int(a[at]), B::Type(library, a[at + 1]));
    return Times(block, part == Part::kRoot ? comm.others : comm.ranks);
  } else {
    // The side of the root has counts, displacements and a type, the other one a count and a type.
    constexpr int kCounts = kCollects ? 4 : 1;
    constexpr int kSingle = kCollects ? 1 : 5;
    if (part == Part::kRoot) {
      return AmountOf(library, SumOf(a[kCounts], comm.others), B::Type(library, a[kCounts + 2]));
    }
    return AmountOf(library, B::Int(a[kSingle]), B::Type(library, a[kSingle + 1]));
  }
}

template <typename B, MpiCount kCount>
Amount CallAmount(const MpiLibrary& library, const Comm& comm, const Word* a) {
  if constexpr (kCount == MpiCount::kNothing) {
    return {};
  } else if constexpr (kCount == MpiCount::kBuffer) {
    return AmountOf(library, B::Int(a[1]), B::Type(library, a[2]));
  } else if constexpr (kCount == MpiCount::kReduction) {
    return AmountOf(library, B::Int(a[2]), B::Type(library, a[3]));
  } else if constexpr (kCount == MpiCount::kReduceScatter) {
    return AmountOf(library, SumOf(a[2], comm.ranks), B::Type(library, a[3]));
  } else if constexpr (kCount == MpiCount::kReduceScatterBlock) {
    return Times(AmountOf(library, B::Int(a[2]), B::Type(library, a[3])), comm.ranks);
  } else if constexpr (kCount == MpiCount::kEach) {
    return Times(AmountOf(library, B::Int(a[4]), B::Type(library, a[5])), comm.others);
  } else if constexpr (kCount == MpiCount::kEachNeighbor) {
    return Times(AmountOf(library, B::Int(a[4]), B::Type(library, a[5])), comm.sources);
  } else if constexpr (kCount == MpiCount::kEachv) {
    return AmountOf(library, SumOf(a[4], comm.others), B::Type(library, a[6]));
  } else if constexpr (kCount == MpiCount::kEachNeighborv) {
    return AmountOf(library, SumOf(a[4], comm.sources), B::Type(library, a[6]));
  } else if constexpr (kCount == MpiCount::kAlltoallv) {
    return AmountOf(library, SumOf(a[5], comm.others), B::Type(library, a[7]));
  } else if constexpr (kCount == MpiCount::kNeighborAlltoallv) {
    return AmountOf(library, SumOf(a[5], comm.sources), B::Type(library, a[7]));
  } else if constexpr (kCount == MpiCount::kAlltoallw) {
    return SumTypes<B>(library, a[5], a[7], comm.others);
  } else if constexpr (kCount == MpiCount::kNeighborAlltoallw) {
    return SumTypes<B>(library, a[5], a[7], comm.sources);
  } else {
    return RootedAmount<B, kCount>(library, comm, a);
  }
}

// Whether a call reduces by an operation that is not commutative. Its operation is argument 4.
template <typename B, MpiCount kCount>
bool NotCommutative(const MpiLibrary& library, const Word* a) {
  if constexpr (kCount == MpiCount::kReduction || kCount == MpiCount::kReduceScatter ||
                kCount == MpiCount::kReduceScatterBlock) {
    const Word op = B::Op(library, a[4]);
    int commutes = 1;
    return op != library.abi.op_null && library.functions.op_commutative(op, &commutes) == 0 &&
           commutes == 0;
  } else {
    return false;
  }
}

}  // namespace diapason::mpi_recorder
