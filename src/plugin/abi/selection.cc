#include "plugin/abi/selection.h"

#include <algorithm>
#include <type_traits>

namespace diapason::plugin {
namespace {

constexpr int kMostRcclTreeChannels = 64;

bool Matches(const Config& wanted, int algorithm, int protocol) {
  return (wanted.algorithm == kKeep || wanted.algorithm == algorithm) &&
         (wanted.protocol == kKeep || wanted.protocol == protocol);
}

bool IsCollNet(int algorithm) { return algorithm == kCollNetDirect || algorithm == kCollNetChain; }

}  // namespace

bool RingIsFarBehind(const CostTable& table) {
  float best[2] = {kPushedAway, kPushedAway};  // of the others, of ring
  for (int algorithm = 0; algorithm < table.algorithms; ++algorithm) {
    for (int protocol = 0; protocol < table.protocols; ++protocol) {
      const float cost = table.At(algorithm, protocol);
      if (Available(cost)) best[algorithm == kRing] = std::min(best[algorithm == kRing], cost);
    }
  }
  return best[0] > 0.0f && best[0] < kPushedAway && best[1] >= kGuardedRatio * best[0];
}

TableChoice CheapestPair(const TableRules& rules, const CostTable& table, const Config& among) {
  TableChoice best;
  float best_cost = kPushedAway;
  for (int algorithm = 0; algorithm < table.algorithms; ++algorithm) {
    for (int protocol = 0; protocol < table.protocols; ++protocol) {
      const float cost = table.At(algorithm, protocol);
      if (!Available(cost) || cost > best_cost || !Matches(among, algorithm, protocol)) continue;
      if (cost == best_cost && !rules.from_2_31) continue;
      best_cost = cost;
      best.algorithm = algorithm;
      best.protocol = protocol;
    }
  }
  best.applicable = best.algorithm != kKeep;
  return best;
}

TableChoice ChooseFromTable(const TableRules& rules, const Config& wanted, const Question& question,
                            const CostTable& table) {
  TableChoice choice;
  if (wanted.algorithm == kKeep || wanted.protocol == kKeep) {
    choice = CheapestPair(rules, table, wanted);
    choice.reason = choice.applicable ? Reason::kRow : Reason::kUnavailable;
    const bool channels_only = wanted.algorithm == kKeep && wanted.protocol == kKeep;
    if (!choice.applicable || channels_only) return choice;
  } else {
    choice.algorithm = wanted.algorithm;
    choice.protocol = wanted.protocol;
  }
  choice.reason = PairFits(rules, choice.algorithm, choice.protocol, question.bytes, table);
  choice.applicable = choice.reason == Reason::kRow;
  return choice;
}

namespace {

// Sets every available entry to kPushedAway. The loop has no branches, so that it is vectorised.
template <typename Count>
void PushAllAway(float* cells, Count count) {
  for (int i = 0; i < count; ++i) {
    const float cost = cells[i];
    const bool available = (cost >= 0.0f) & (cost < kPushedAway);
    cells[i] = available ? kPushedAway : cost;
  }
}

}  // namespace

void ApplyToTable(Library library, int algorithm, int protocol, CostTable* table) {
  const int count = table->algorithms * table->protocols;
  const int chosen = algorithm * table->protocols + protocol;
  float* cells = table->cells;
  if (library == Library::kRccl) {
    // An earlier entry that is already 0 would win the tie.
    for (int i = 0; i < count; ++i) cells[i] = cells[i] == 0.0f ? kPushedAway : cells[i];
    cells[chosen] = 0.0f;
    return;
  }
  const float estimate = cells[chosen];
  // The table size of every NCCL since 2.23, as a compile-time constant.
  constexpr int kUsualCount = 7 * 3;
  if (count == kUsualCount) [[likely]] {
    PushAllAway(cells, std::integral_constant<int, kUsualCount>());
  } else {
    PushAllAway(cells, count);
  }
  cells[chosen] = estimate;
}

void KeepWhatIsReadBack(const float* before, CostTable* table) {
  const int count = table->algorithms * table->protocols;
  float* cells = table->cells;
  int winner = -1;
  for (int i = 0; i < count; ++i) {
    if (!(before[i] >= 0.0f)) {
      cells[i] = before[i];
    } else if (cells[i] < 0.0f && (winner < 0 || cells[i] <= cells[winner])) {
      winner = i;
    }
  }
  if (winner < 0) return;
  for (int i = 0; i < count; ++i) {
    if (before[i] >= 0.0f && cells[i] <= 0.0f) cells[i] = kPushedAway;
  }
  cells[winner] = 0.0f;
}

TableChoice ChoosePair(Library library, const Config& wanted, const Question& question,
                       const PairSupport& support) {
  TableChoice choice;
  choice.algorithm = wanted.algorithm;
  choice.protocol = wanted.protocol;
  if (wanted.algorithm == kKeep && wanted.protocol == kKeep) {
    choice.reason = Reason::kRow;
    choice.applicable = true;
    return choice;
  }
  if (wanted.algorithm == kKeep || wanted.protocol == kKeep) {
    choice.reason = Reason::kPartialRow;
    return choice;
  }
  if (!PairExists(question.collective, wanted.algorithm, wanted.protocol)) {
    choice.reason = Reason::kUnavailable;
    return choice;
  }
  if (TreeTooSmall(library, wanted.algorithm, question.bytes)) {
    choice.reason = Reason::kTreeTooSmall;
    return choice;
  }
  bool known = true;
  switch (wanted.algorithm) {
    case kTree:
    case kRing:
      known = wanted.protocol != kLl128 || support.ll128;
      break;
    case kCollNetChain:
      known = support.collnet && support.shape.nodes > 1;
      break;
    case kNvls:
      known = support.nvls && support.shape.nodes == 1;
      break;
    case kNvlsTree:
      known = support.nvls && support.shape.nodes > 1;
      break;
    default:
      // collnet_direct also needs NVSwitch, and pat a newer library; this API reports neither.
      known = false;
  }
  choice.reason = known ? Reason::kRow : Reason::kUnknownSupport;
  choice.applicable = known;
  return choice;
}

int SafeChannels(Library library, int channels, int algorithm, const Shape& shape) {
  if (channels <= 0 || IsCollNet(algorithm)) return 0;
  if (algorithm == kNvls && shape.nodes != 1) return 0;
  if (library == Library::kRccl && algorithm == kTree) {
    return std::min(channels, kMostRcclTreeChannels);
  }
  return std::min(channels, ChannelLimit(library));
}

}  // namespace diapason::plugin
