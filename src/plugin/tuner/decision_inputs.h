#pragma once

#include <cstdint>
#include <string>

#include "base/settings.h"
#include "plugin/abi/host.h"
#include "plugin/tuner/chain.h"

namespace diapason::plugin {

class CommState;

// Everything that an answer depends on beside the call itself, the policy and what the ranks agree
// on while the job runs: from the settings, the environment, the library and the machine, as it is
// effective and not as it was set. Ranks whose inputs differ could answer differently, so these are
// what ranks compare when a communicator is created. The list is the type: a decision can use only
// what is named here, and what is named here is compared.
//
//   type, name, word under which ranks compare it and tell the user
#define DIAPASON_DECISION_INPUTS(INPUT)                                                            \
  INPUT(std::string, plugin, "plugin") /* the plugin's version */                                  \
  INPUT(int, protocol, "protocol")     /* of what ranks write into the store */                    \
  INPUT(std::string, library, "library")                                                           \
  INPUT(int, library_version, "version")                                                           \
  INPUT(int, tuner_api, "tuner")                                                                   \
  INPUT(int, profiler_api, "profiler") /* 0: that half is not loaded */                            \
  INPUT(int64_t, nodes, "nodes")                                                                   \
  INPUT(std::string, mode, "mode")                                                                 \
  INPUT(bool, numerics_pinned, "numerics_pinned")                                                  \
  INPUT(bool, reg_buff_rows, "regbuff")                 /* rows that depend on regBuff are used */ \
  INPUT(bool, allgather_channels, "allgather_channels") /* counts above 1 may be asked for */      \
  INPUT(bool, ll128_works, "ll128")                     /* API v1 and v2 */                        \
  INPUT(bool, single_shape, "single_shape")             /* API v1 */                               \
  INPUT(bool, pair_channels, "pair_channels")           /* the library checks a pair's count */    \
  INPUT(bool, user_forces_pair, "forced_pair") /* API v1 and v2: NCCL_ALGO or NCCL_PROTO */        \
  INPUT(bool, tree_ll_rule, "tree_ll_rule") /* RCCL's rule for gfx950, see docs/job/plugin.md */   \
  INPUT(std::string, table, "table")        /* variables that shape the cost table */              \
  INPUT(std::string, chain, "chain")        /* the chained tuner that was opened */                \
  INPUT(std::string, policy, "policy")      /* where every rank uses its own */

struct DecisionInputs {
#define DIAPASON_MEMBER(type, name, word) type name{};
  DIAPASON_DECISION_INPUTS(DIAPASON_MEMBER)
#undef DIAPASON_MEMBER

  // "word=value" for each, separated by blanks, for JoinRequest::alike.
  std::string Words() const;
};

// Reads all of them but `policy`. `communicator` is nullptr where the profiler half is not loaded,
// `chain` where no other tuner was opened.
DecisionInputs ReadDecisionInputs(const Settings& settings, const CommInit& init, const Host& host,
                                  const CommState* communicator, const Chain* chain);

}  // namespace diapason::plugin
