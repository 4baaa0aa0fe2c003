#pragma once

#include "plugin/learning/epoch_proposer.h"

namespace diapason::plugin {

// Rank 0's proposals for one context while the default and the policy take turns (agree::Turns):
// short epochs, each of them for the turn that the job has when it is proposed. Contexts therefore
// change over at different calls, a little after the turn begins. Correctness does not depend on
// it, as with ContextExplorer. Runs on the learning thread only; the arguments of its constructor
// outlive it.
class TurnProposer {
 public:
  TurnProposer(const LearningHandover* learning, ContextHandover* context, const Reporter* reporter,
               BackgroundStore* store);

  // `frozen`: the default runs until the job is thawed.
  void Poll(double now, bool policy_turn, bool frozen);

 private:
  const LearningHandover* const learning_;
  BackgroundStore* const store_;
  EpochProposer proposer_;
  const bool has_rows_;  // a row of the policy may match a call of this context
};

}  // namespace diapason::plugin
