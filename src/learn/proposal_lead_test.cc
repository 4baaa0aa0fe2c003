#include "learn/proposal_lead.h"

#include <gtest/gtest.h>

namespace diapason::learn {
namespace {

TEST(ProposalLead, FollowsTheCallsThatAreMadeDuringAProposal) {
  ProposalLead lead;
  EXPECT_GE(lead.calls(), 1u) << "a proposal takes a time even before one is measured";
  for (int i = 0; i < 20; ++i) lead.Proposed(1);
  const uint64_t slow = lead.calls();
  EXPECT_GT(slow, 1u);
  EXPECT_LE(slow, 8u);
  // The job calls faster, or the store answers later.
  lead.Proposed(40);
  EXPECT_GT(lead.calls(), 40u) << "at once, not after an average has moved";
  for (int i = 0; i < 60; ++i) lead.Proposed(1);
  EXPECT_LE(lead.calls(), slow + 1) << "a single pause is forgotten";
}

TEST(ProposalLead, GrowsWhileProposalsAreLateThoughRankZeroSeesFewCalls) {
  ProposalLead lead;
  uint64_t before = lead.calls();
  for (int i = 0; i < 6; ++i) {
    lead.Proposed(1);
    lead.Late();
    EXPECT_GT(lead.calls(), before);
    before = lead.calls();
  }
}

TEST(ProposalLead, IsBounded) {
  ProposalLead lead;
  lead.Proposed(UINT64_MAX);
  const uint64_t most = lead.calls();
  EXPECT_LE(most, 4096u);
  for (int i = 0; i < 100; ++i) lead.Late();
  EXPECT_EQ(lead.calls(), most);
}

}  // namespace
}  // namespace diapason::learn
