#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "flight_recorder/progress.h"

namespace diapason::flight_recorder {

// Ranks that called different things as one collective of their group, or a send and a receive
// that do not fit.
struct Mismatch {
  enum class Kind : uint8_t { kOperation, kSize, kType, kExchange, kPair };

  Kind kind = Kind::kOperation;
  uint32_t group = kNoIndex;
  int64_t sequence = -1;
  // The ranks of each variant, most ranks first, with what they called.
  struct Variant {
    std::vector<uint32_t> ranks;  // indexes
    const Entry* entry = nullptr;
    std::string call;
  };
  std::vector<Variant> variants;
  bool tie = false;    // no variant has more ranks than the others
  bool open = false;   // a rank has not completed it
  std::string remark;  // "they call it later": how the orders of calls differ; "" if unknown
};

// The first mismatch of each group, those that block a rank first. What ranks may do differently
// counts as equal: uneven all_to_all, roots of gather and scatter, entries that a full buffer has
// dropped, shapes with the same number of elements.
std::vector<Mismatch> FindMismatches(const JobProgress& job);

// The mismatch of one matched send and receive, if there is one.
bool PairDiffers(const JobProgress& job, const Op& send, const Op& receive);

}  // namespace diapason::flight_recorder
