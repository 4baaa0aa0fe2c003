#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "comm/backends/sim/cluster.h"
#include "diapason/config.h"
#include "domain/vocabulary.h"

namespace diapason::comm::sim {

// The simulated library: what it would choose, and what a call then costs. Everything here takes
// the same few nanoseconds for 8 ranks and for thousands.
//
// Sizes are counted as the library counts them: for allgather, reducescatter and alltoall, what all
// ranks' parts come to.

// Where the ranks of a communicator lie.
struct RankLayout {
  int ranks = 1;
  int nodes = 1;
  int per_node = 1;  // ranks on the fullest node
};

// `ranks` GPUs of the cluster, node after node.
Result<RankLayout> FillNodes(const Cluster& cluster, int ranks);

struct SimCost {
  double seconds = 0;
  // What really runs. All default where there is nothing to choose: one rank, alltoall.
  Config config;
};

// What a call costs under a configuration, without noise. The default Config is the library's own
// choice, half a pair what the library thinks best of the rest. A pair that is not on offer is an
// error that says why.
Result<SimCost> Estimate(const Cluster& cluster, const RankLayout& layout, Collective collective,
                         uint64_t bytes, const Config& config);
Result<SimCost> Estimate(const Cluster& cluster, int ranks, Collective collective, uint64_t bytes,
                         const Config& config);

// The same for operations nobody tunes.
double SendSeconds(const Cluster& cluster, bool same_node, uint64_t bytes);
double AllToAllSeconds(const Cluster& cluster, const RankLayout& layout, uint64_t bytes);
double BarrierSeconds(const Cluster& cluster, const RankLayout& layout);

// Why a pair cannot run there; empty when it can.
std::string WhyNotOffered(const Cluster& cluster, const RankLayout& layout, Collective collective,
                          int algorithm, int protocol);
// Every pair on offer, with every sensible number of channels: powers of two, and all there are.
std::vector<Config> Configurations(const Cluster& cluster, const RankLayout& layout,
                                   Collective collective);

// The library's own formula, in microseconds: what it believes a pair costs. Negative when it would
// not consider the pair.
// REQUIRES: layout.ranks > 1.
double FormulaMicros(const Cluster& cluster, const RankLayout& layout, Collective collective,
                     uint64_t bytes, int algorithm, int protocol);

// The channels that really carry a call. `asked` of 0 leaves it to the library.
int ChannelsUsed(const Cluster& cluster, const RankLayout& layout, Collective collective,
                 uint64_t bytes, int algorithm, int protocol, int asked);

// How the machine behaves: what a pair really costs, in seconds.
// REQUIRES: layout.ranks > 1 and the pair is on offer.
double MachineSeconds(const Cluster& cluster, const RankLayout& layout, Collective collective,
                      uint64_t bytes, int algorithm, int protocol, int channels);

// Bus bandwidth as nccl-tests counts it, in bytes per second: what one link had to carry.
double BusBandwidth(Collective collective, int ranks, uint64_t bytes, double seconds);

}  // namespace diapason::comm::sim
