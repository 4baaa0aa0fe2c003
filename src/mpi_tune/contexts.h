#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "domain/decision.h"
#include "mpi_profile/mpi_profile.h"
#include "policy/policy.h"

namespace diapason::mpi_tune {

// Calls of one collective in a band of sizes that ends at a power of two, on communicators of one
// size: what gets one configuration.
struct Context {
  Collective collective = Collective::kAllReduce;
  int band = 0;
  uint32_t ranks = 0;
  uint64_t least_bytes = 0;
  uint64_t most_bytes = 0;
  uint64_t usual_bytes = 0;  // the size with most of the time
  uint64_t calls = 0;        // of all ranks
  double seconds = 0;        // inside them, mean over the ranks
  double share = 0;          // of the program's time

  // "allreduce of 64 KiB on 4 ranks".
  std::string Text() const;
};

// The calls that rules can change and that take at least `least_share` of the program's time, those
// with most time first, at most `most` of them.
std::vector<Context> ContextsOf(const mpi_profile::MpiProfile& profile, double least_share,
                                size_t most);

// The seconds of one call of each context in a launch of the program, by the medians of its sizes;
// 0: it has none there.
std::vector<double> CallSeconds(const mpi_profile::MpiProfile& profile,
                                const std::vector<Context>& contexts);

// Configurations worth trying: every algorithm that Open MPI has for the collective and that works
// on so many ranks, with segment sizes where it uses them and they are smaller than the data. The
// library's own choice is the first.
std::vector<Config> CandidatesOf(const Context& context);

// The policy that gives contexts these configurations, in their order; default: no row. `remarks`
// gets a line for each row.
policy::Policy PolicyOf(const std::vector<Context>& contexts, const std::vector<Config>& configs,
                        std::vector<std::string>* remarks);

}  // namespace diapason::mpi_tune
