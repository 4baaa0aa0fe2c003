#include "learn/proposal_lead.h"

#include <algorithm>

namespace diapason::learn {
namespace {

// The most calls during a proposal are forgotten at this rate per proposal: after a single pause of
// the learning thread the lead shrinks again within some twenty proposals.
constexpr double kKept = 0.85;
constexpr double kSafety = 2;
constexpr uint64_t kLeast = 2;
// A longer lead would delay learning by more than an epoch that is held (32 calls) does now and
// then.
constexpr uint64_t kLongest = 96;

}  // namespace

void ProposalLead::Proposed(uint64_t calls_meanwhile) {
  const auto measured = static_cast<double>(std::min(calls_meanwhile, kLongest));
  most_ = std::max(kKept * most_, measured);
}

void ProposalLead::Late() {
  // Another rank may be ahead of rank 0, whose own count then says too little.
  most_ = std::min<double>(2 * most_ + 1, kLongest);
}

uint64_t ProposalLead::calls() const {
  return std::min(kLeast + static_cast<uint64_t>(kSafety * most_), kLongest);
}

}  // namespace diapason::learn
