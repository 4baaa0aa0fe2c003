#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "policy/policy.h"

namespace diapason::policy {

// A policy for Open MPI as the dynamic rules file of its component coll_tuned, which then makes the
// policy's choices by itself, without us in the job:
//
//   mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE ...
//
// Such a file knows communicator sizes and message sizes, both as lower bounds: the last one not
// above the call's counts, and below the first communicator size the first one does. So every gap
// between rows becomes a rule of its own, with algorithm 0, which is Open MPI's own decision, and
// rows for one number of ranks are fenced in on both sides. What coll_tuned compares are the bytes
// that a policy means: for allgather, reducescatter and alltoall those of all ranks together.
//
// What a rules file cannot say:
// - Nodes. With `nodes`, the file is for jobs on that many, and rows for others are left out.
//   Without, rows apply on any number of them; rows for one communicator size that name different
//   numbers are an error.
// - numPipeOps and regBuff, which no MPI call has: such rows match nothing and are left out.
//
// `two_proc` is written for two ranks only: with more, Open MPI fails the call.
//
// `notes` gets a sentence for whatever is less than the policy says. Nothing is written for a
// policy of another library, or one that would make more than kMostRulesFileRows.
Result<std::string> OpenMpiRulesText(const Policy& policy, std::vector<std::string>* notes,
                                     int64_t nodes = kAny);

// Rows that are looked at, over all communicator sizes. Open MPI reads through the rules of a
// communicator one by one, at every call.
inline constexpr size_t kMostRulesFileRows = size_t{1} << 20;

}  // namespace diapason::policy
