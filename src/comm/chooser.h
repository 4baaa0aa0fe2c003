#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "diapason/comm.h"
#include "policy/table.h"

namespace diapason::comm {

// The configurations that a policy gives for the calls of one group. Immutable and thread-safe.
class PolicyChooser {
 public:
  // For a group of this shape.
  PolicyChooser(std::shared_ptr<const policy::Policy> policy, const Shape& shape);

  // The default if no row matches, or if the operation has no choice (send, recv, barrier).
  Config ConfigFor(const Call& call) const;
  size_t rows() const { return table_.row_count(); }
  const std::shared_ptr<const policy::Policy>& policy() const { return policy_; }

 private:
  std::shared_ptr<const policy::Policy> policy_;
  policy::DecisionTable table_;
  int ranks_;
};

// Loads GroupOptions::policy, which must be for the backend's library.
Result<std::shared_ptr<const policy::Policy>> LoadChoices(const std::string& file,
                                                          const std::string& backend,
                                                          const std::string& cluster);

}  // namespace diapason::comm
