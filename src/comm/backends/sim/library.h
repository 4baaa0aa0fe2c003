#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "comm/backends/sim/cluster.h"
#include "diapason/config.h"
#include "domain/vocabulary.h"

namespace diapason::comm::sim {

// The simulated library: its choice, and the cost of a call. Every function takes the same few
// nanoseconds for 8 ranks and for thousands.
//
// Sizes are counted as the library counts them: for allgather, reducescatter and alltoall, the
// total of all ranks' parts.

// The placement of a communicator's ranks.
struct RankLayout {
  int ranks = 1;
  int nodes = 1;
  int per_node = 1;  // ranks on the fullest node
};

// `ranks` GPUs of the cluster, filling one node after the other.
Result<RankLayout> FillNodes(const Cluster& cluster, int ranks);

struct SimCost {
  double seconds = 0;
  // The configuration that runs. Default if there is no choice: one rank, alltoall.
  Config config;
};

// The cost of a call with a configuration, without noise. The default Config is the library's own
// choice; for half a pair the library chooses the other half. A pair that is not available is an
// error that says why.
Result<SimCost> Estimate(const Cluster& cluster, const RankLayout& layout, Collective collective,
                         uint64_t bytes, const Config& config);
Result<SimCost> Estimate(const Cluster& cluster, int ranks, Collective collective, uint64_t bytes,
                         const Config& config);

// The same for operations without a choice.
double SendSeconds(const Cluster& cluster, bool same_node, uint64_t bytes);
double AllToAllSeconds(const Cluster& cluster, const RankLayout& layout, uint64_t bytes);
double BarrierSeconds(const Cluster& cluster, const RankLayout& layout);

// Why a pair cannot run there; empty if it can.
std::string WhyNotOffered(const Cluster& cluster, const RankLayout& layout, Collective collective,
                          int algorithm, int protocol);
// Every available pair, with a range of channel counts: powers of two, and the maximum.
std::vector<Config> Configurations(const Cluster& cluster, const RankLayout& layout,
                                   Collective collective);

// The library's formula, in microseconds: its estimate for a pair. Negative if it would not
// consider the pair. REQUIRES: layout.ranks > 1.
double FormulaMicros(const Cluster& cluster, const RankLayout& layout, Collective collective,
                     uint64_t bytes, int algorithm, int protocol);

// The channels that carry a call. `asked` 0 leaves the number to the library.
int ChannelsUsed(const Cluster& cluster, const RankLayout& layout, Collective collective,
                 uint64_t bytes, int algorithm, int protocol, int asked);

// The machine's actual cost of a pair, in seconds. REQUIRES: layout.ranks > 1 and the pair is
// available.
double MachineSeconds(const Cluster& cluster, const RankLayout& layout, Collective collective,
                      uint64_t bytes, int algorithm, int protocol, int channels);

// Bus bandwidth as nccl-tests defines it, in bytes per second.
double BusBandwidth(Collective collective, int ranks, uint64_t bytes, double seconds);

}  // namespace diapason::comm::sim
