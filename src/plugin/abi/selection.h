#pragma once

#include "domain/decision.h"
#include "domain/vocabulary.h"

namespace diapason::plugin {

// Turns a wanted configuration into the answer that the library understands, or says why it must
// not. Pure functions: no allocation, lock or system call.

// Whose table it is. Made from a library alone it stands for versions before 2.31.
struct TableRules {
  TableRules(Library of, bool newer = false)  // NOLINT: a library stands for its rules
      : library(of), from_2_31(newer) {}

  Library library;
  // From 2.31 on the library takes the last of equal costs (before: the first), marks what it does
  // not offer by -1 alone, reads back only what it has offered, and takes the smallest number
  // whatever its sign.
  bool from_2_31;
};

// The library's table of estimated microseconds, row-major, with the library's dimensions.
struct CostTable {
  float* cells = nullptr;
  int algorithms = 0;
  int protocols = 0;

  bool Valid() const {
    return cells != nullptr && algorithms > 0 && protocols > 0 && algorithms <= 64 &&
           protocols <= 64;
  }
  bool Has(int algorithm, int protocol) const {
    return algorithm >= 0 && algorithm < algorithms && protocol >= 0 && protocol < protocols;
  }
  float At(int algorithm, int protocol) const { return cells[algorithm * protocols + protocol]; }
};

// Negative entries (not only -1) and NaN mean "not available", and so does a value this large,
// which tuners write to exclude an entry.
inline constexpr float kPushedAway = 1e9f;
inline bool Available(float cost) { return cost >= 0.0f && cost < kPushedAway; }

// Whether anything is on offer. From 2.31 on the library also asks about calls that it does not
// make: about kernels that are not in the table, which is then -1 throughout.
inline bool OffersAny(const CostTable& table) {
  const int count = table.algorithms * table.protocols;
  for (int i = 0; i < count; ++i) {
    if (table.cells[i] >= 0.0f) return true;
  }
  return false;
}

// Whether a question is about a call. numPipeOps is at least 1 for every call of every version;
// from 2.31 on the library asks with 0 when it only compares kinds of kernels.
inline bool IsAboutACall(int pipe_ops, const CostTable& table) {
  return pipe_ops > 0 && OffersAny(table);
}

// For 8-bit floats on more than 8 ranks NCCL multiplies the estimates of ring by 1024 to discourage
// it. Before 2.31 it also multiplies those of disabled entries (-1), which gives it away. From 2.31
// on only the size of the estimates does: nothing else makes ring this much slower than the best of
// the others where ring would be a sensible choice.
inline constexpr float kGuardedRatio = 256.0f;
bool RingIsFarBehind(const CostTable& table);
inline bool RingIsGuarded(const TableRules& rules, const CostTable& table) {
  if (table.algorithms <= kRing) return false;
  if (rules.from_2_31) return RingIsFarBehind(table);
  const float* ring = table.cells + kRing * table.protocols;
  for (int protocol = 0; protocol < table.protocols; ++protocol) {
    if (ring[protocol] <= -1000.0f) return true;
  }
  return false;
}

// RCCL's tree does not work below 64 bytes.
inline bool TreeTooSmall(Library library, int algorithm, uint64_t bytes) {
  return algorithm == kTree && bytes < 64 && library == Library::kRccl;
}

// kRow if the pair can be chosen for a call of this size; otherwise the reason why not.
inline Reason PairFits(const TableRules& rules, int algorithm, int protocol, uint64_t bytes,
                       const CostTable& table) {
  if (!table.Has(algorithm, protocol) || !Available(table.At(algorithm, protocol))) {
    return Reason::kUnavailable;
  }
  if (algorithm == kRing && RingIsGuarded(rules, table)) return Reason::kFp8Guard;
  if (TreeTooSmall(rules.library, algorithm, bytes)) return Reason::kTreeTooSmall;
  return Reason::kRow;
}

struct TableChoice {
  Reason reason = Reason::kNoRow;
  bool applicable = false;
  // The pair that will run; kKeep where the library still decides.
  int algorithm = kKeep;
  int protocol = kKeep;
};

// The pair the library would choose by itself: the cheapest available one; kKeep if there is none.
TableChoice CheapestPair(const TableRules& rules, const CostTable& table, const Config& among);

// Whether this table offers `wanted`. A row that names only an algorithm or only a protocol stands
// for the cheapest available pair with it. For a row with only a channel count the pair is looked
// up too, because some algorithms must not be given one.
TableChoice ChooseFromTable(const TableRules& rules, const Config& wanted, const Question& question,
                            const CostTable& table);

// Makes the library choose a pair. NCCL: every other available entry is set to kPushedAway and the
// chosen one keeps its estimate, so that ncclGroupSimulateEnd stays meaningful. RCCL: the chosen
// entry becomes exactly 0, because RCCL otherwise overrides the protocol. An unavailable entry is
// never made available. REQUIRES: PairFits
void ApplyToTable(Library library, int algorithm, int protocol, CostTable* table);

// What another tuner has written into a table of 2.31 or later, as the library reads it: entries
// that were not on offer `before` are as they were, and a negative number on one that was, which
// makes it the library's choice, becomes 0 there and kPushedAway elsewhere. The library chooses the
// same pair from the result.
void KeepWhatIsReadBack(const float* before, CostTable* table);

// The same check for tuner API v1 and v2, which have no table: the library takes the answered pair
// unchecked, so only pairs known to work may be answered.
struct PairSupport {
  Shape shape;  // nodes 0: unknown
  bool collnet = false;
  bool nvls = false;
  bool ll128 = false;
};
TableChoice ChoosePair(Library library, const Config& wanted, const Question& question,
                       const PairSupport& support);

// The channel count to ask for, or 0 to leave it to the library: the library does not check the
// counts of CollNet and multi-node NVLS, and RCCL's trees have 64 at most.
int SafeChannels(Library library, int channels, int algorithm, const Shape& shape);

}  // namespace diapason::plugin
