// The actual behaviour of the simulated machine: latency of the steps, bandwidth that saturates
// with the number of channels, and a pipeline with fill time.
#include <algorithm>
#include <bit>
#include <cmath>

#include "comm/backends/sim/library.h"
#include "domain/collectives.h"

namespace diapason::comm::sim {
namespace {

// How many sends and receives of an alltoall are in flight at once.
constexpr double kSendsAtOnce = 8;

// The depth of a binary tree of `number` ranks.
double CeilLog2(int number) { return std::bit_width(static_cast<unsigned>(number - 1)); }

struct StepCount {
  double intra = 0;
  double inter = 0;
};

// The sequential steps from the first byte's start to its arrival.
StepCount CountSteps(const RankLayout& layout, Collective collective, int algorithm) {
  const double there_and_back = collective == Collective::kAllReduce ? 2 : 1;
  const double local = layout.per_node - 1;
  const double crossings = layout.nodes - 1;
  const double depth = CeilLog2(layout.nodes);
  switch (algorithm) {
    case kTree:
      return {there_and_back * local, there_and_back * depth};
    case kCollNetDirect:
      return {there_and_back, 1};
    case kCollNetChain:
      return {there_and_back * local, 1};
    case kNvls:
      return {there_and_back, layout.nodes > 1 ? 1.0 : 0.0};
    case kNvlsTree:
      return {there_and_back, there_and_back * depth};
    case kPat:
      return {local, depth};
    default:
      return {there_and_back * (layout.ranks - 1 - crossings), there_and_back * crossings};
  }
}

// The fraction of the message that every link carries.
double WireShare(Collective collective, int algorithm, int ranks) {
  // The switch reduces: every GPU sends its data once, and a part of the result.
  const bool switched = algorithm == kNvls || algorithm == kNvlsTree ||
                        algorithm == kCollNetDirect || algorithm == kCollNetChain;
  if (collective == Collective::kAllReduce && switched) return 1 + 1.0 / ranks;
  return BusFactor(collective, ranks);
}

// The bandwidth of several channels with the total `most`: near their sum while that is small,
// never above `most`.
double Saturated(double sum, double most) {
  const double ratio = sum / most;
  return sum / std::pow(1 + ratio * ratio * ratio * ratio, 0.25);
}

// Two durations combined; their sum if `overlap` is 1.
double Together(double a, double b, double overlap) {
  if (overlap == 1 || a == 0 || b == 0) return a + b;
  return std::pow(std::pow(a, overlap) + std::pow(b, overlap), 1 / overlap);
}

// The part of a node's network that its ranks can use: every GPU has its own share.
double NetShare(const Cluster& cluster, const RankLayout& layout) {
  return std::min(1.0, static_cast<double>(layout.per_node) / cluster.gpus_per_node);
}

}  // namespace

double MachineSeconds(const Cluster& cluster, const RankLayout& layout, Collective collective,
                      uint64_t bytes, int algorithm, int protocol, int channels) {
  const PairCost& pair = *cluster.pairs[algorithm][protocol];
  const StepCount steps = CountSteps(layout, collective, algorithm);
  const double latency = pair.base_us + steps.intra * pair.hop_us + steps.inter * pair.net_us +
                         (channels - 1) * pair.channel_us;
  double most = pair.gbps;
  if (layout.nodes > 1) {
    const double net = pair.net_gbps * NetShare(cluster, layout);
    most = layout.per_node > 1 ? std::min(most, net) : net;
  }
  const double gbps = Saturated(channels * pair.channel_gbps, most);
  const double carried =
      static_cast<double>(bytes) * WireShare(collective, algorithm, layout.ranks);
  const double moving = carried / (1000 * gbps);
  return Together(latency, moving, pair.overlap) * 1e-6;
}

double SendSeconds(const Cluster& cluster, bool same_node, uint64_t bytes) {
  const Links& links = cluster.links;
  const double latency = same_node ? links.intra_us : links.inter_us;
  const double gbps = same_node ? links.intra_gbps : links.inter_gbps / cluster.gpus_per_node;
  return (links.launch_us + latency + static_cast<double>(bytes) / (1000 * gbps)) * 1e-6;
}

double BarrierSeconds(const Cluster& cluster, const RankLayout& layout) {
  const Links& links = cluster.links;
  return (links.launch_us + 2 * (CeilLog2(layout.per_node) * links.intra_us +
                                 CeilLog2(layout.nodes) * links.inter_us)) *
         1e-6;
}

double AllToAllSeconds(const Cluster& cluster, const RankLayout& layout, uint64_t bytes) {
  const Links& links = cluster.links;
  const double near = layout.per_node - 1;
  const double far = layout.ranks - layout.per_node;
  const double part = static_cast<double>(bytes) / layout.ranks;
  const double latency = (near * links.intra_us + far * links.inter_us) / kSendsAtOnce;
  const double inside = near * part / (1000 * links.intra_gbps);
  const double across =
      far == 0 ? 0 : far * part * cluster.gpus_per_node / (1000 * links.inter_gbps);
  return (links.launch_us + latency + std::max(inside, across)) * 1e-6;
}

}  // namespace diapason::comm::sim
