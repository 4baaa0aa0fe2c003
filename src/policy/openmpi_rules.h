#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "policy/policy.h"

namespace diapason::policy {

// Writes a policy for Open MPI as a dynamic rules file of its component coll_tuned, which then
// applies the policy without diapason in the job:
//
//   mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE ...
//
// Such a file has communicator sizes and message sizes, both as lower bounds: the last one not
// above the call's applies, and below the first communicator size the first one does. So every gap
// between rows becomes a rule with algorithm 0, Open MPI's own decision, and rows for one number of
// ranks are delimited on both sides. coll_tuned compares the same bytes as a policy: for allgather,
// reducescatter and alltoall the total of all ranks.
//
// A rules file cannot express:
// - Nodes. With `nodes`, the file is for jobs on that many nodes, and rows for others are left out.
//   Without, rows apply on any number of nodes; rows for one communicator size that name different
//   numbers are an error.
// - numPipeOps and regBuff, which no MPI call has: such rows match nothing and are left out.
//
// `two_proc` is written for two ranks only: with more, Open MPI fails the call.
//
// `notes` gets a sentence for every restriction of the policy. Fails for a policy of another
// library, or one that would make more than kMostRulesFileRows.
Result<std::string> OpenMpiRulesText(const Policy& policy, std::vector<std::string>* notes,
                                     int64_t nodes = kAny);

// Limit over all communicator sizes. Open MPI searches the rules of a communicator linearly, at
// every call.
inline constexpr size_t kMostRulesFileRows = size_t{1} << 20;

}  // namespace diapason::policy
