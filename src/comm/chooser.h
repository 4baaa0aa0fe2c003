#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "diapason/comm.h"
#include "policy/table.h"

namespace diapason::comm {

// Which configuration a policy has for the calls of one group. Immutable; any thread may ask.
class PolicyChooser {
 public:
  // For a group of this shape.
  PolicyChooser(std::shared_ptr<const policy::Policy> policy, const Shape& shape);

  // The default where no row matches, or where nobody has a choice (send, recv, barrier).
  Config ConfigFor(const Call& call) const;
  size_t rows() const { return table_.row_count(); }
  const std::shared_ptr<const policy::Policy>& policy() const { return policy_; }

 private:
  std::shared_ptr<const policy::Policy> policy_;
  policy::DecisionTable table_;
  int ranks_;
};

// The policy of GroupOptions::policy, which must be for what the backend is.
Result<std::shared_ptr<const policy::Policy>> LoadChoices(const std::string& file,
                                                          const std::string& backend,
                                                          const std::string& cluster);

}  // namespace diapason::comm
