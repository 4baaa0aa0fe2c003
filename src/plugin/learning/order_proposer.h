#pragma once

#include "plugin/learning/candidates.h"
#include "plugin/learning/epoch_proposer.h"
#include "policy/order.h"

namespace diapason::plugin {

// Rank 0's proposals for one context while a program outside the job says what should run
// (agree::OrderLog): short epochs, each with the configuration that the present order has for this
// context, if all ranks offer it, else the library's own. Correctness does not depend on it, as
// with ContextExplorer. Runs on the learning thread only; the arguments of its constructor outlive
// it.
class OrderProposer {
 public:
  OrderProposer(const LearningHandover* learning, ContextHandover* context,
                const Reporter* reporter, BackgroundStore* store);

  // `order`: nullptr as long as there is none. `frozen`: the default runs until the job is thawed.
  void Poll(double now, const policy::Order* order, bool frozen);

 private:
  Config Wanted(const policy::Order& order) const;

  const LearningHandover* const learning_;
  const ContextHandover* const context_;
  BackgroundStore* const store_;
  Candidates candidates_;
  bool offers_known_ = false;
  EpochProposer proposer_;
};

}  // namespace diapason::plugin
