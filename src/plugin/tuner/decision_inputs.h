#pragma once

#include <cstdint>
#include <string>

#include "base/settings.h"
#include "plugin/abi/host.h"
#include "plugin/tuner/chain.h"

namespace diapason::plugin {

class CommState;

// All inputs of an answer other than the call itself, the policy and the cells of the job:
// settings, environment, library and machine, as effective and not as set. Ranks with different
// inputs could answer differently, so ranks compare them when a communicator is created. A decision
// can use only the members of this type, and every member is compared.
//
//   type, name, word under which ranks compare it and report it to the user
#define DIAPASON_DECISION_INPUTS(INPUT)                                                            \
  INPUT(std::string, plugin, "plugin") /* the plugin's version */                                  \
  INPUT(int, protocol, "protocol")     /* of what ranks write into the store */                    \
  INPUT(std::string, library, "library")                                                           \
  INPUT(int, library_version, "version")                                                           \
  INPUT(int, tuner_api, "tuner")                                                                   \
  INPUT(int, profiler_api, "profiler")                  /* 0: that half is not loaded */           \
  INPUT(bool, ras_changes_events, "ras_changes_events") /* see ReadDecisionInputs */               \
  INPUT(int64_t, nodes, "nodes")                                                                   \
  INPUT(std::string, mode, "mode")                                                                 \
  INPUT(bool, numerics_pinned, "numerics_pinned")                                                  \
  INPUT(bool, reg_buff_rows, "regbuff")                 /* rows that depend on regBuff are used */ \
  INPUT(bool, allgather_channels, "allgather_channels") /* counts above 1 may be asked for */      \
  INPUT(int, min_ctas, "min_ctas")             /* from 2.31 on: no call gets fewer channels */     \
  INPUT(bool, ll128_works, "ll128")            /* API v1 and v2 */                                 \
  INPUT(bool, single_shape, "single_shape")    /* API v1 */                                        \
  INPUT(bool, pair_channels, "pair_channels")  /* the library checks a pair's count */             \
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

// Reads all of them except `policy`. `communicator` is nullptr if the profiler half is not loaded,
// `chain` if there is no chained tuner.
DecisionInputs ReadDecisionInputs(const Settings& settings, const CommInit& init, const Host& host,
                                  const CommState* communicator, const Chain* chain);

}  // namespace diapason::plugin
