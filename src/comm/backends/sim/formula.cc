// The library's model: NCCL's analytic cost model, written from its description.
//
//   microseconds = latency + bytes / (1000 * bandwidth), bandwidth in 1e9 bytes per second
//
// Checked against cost tables that NCCL itself printed; see library_test.cc.
#include <algorithm>
#include <array>
#include <bit>

#include "comm/backends/sim/library.h"
#include "domain/collectives.h"

namespace diapason::comm::sim {
namespace {

using PerPair = std::array<std::array<double, kProtocolCount>, kAlgorithmCount>;

// Rows: tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat. Columns: LL, LL128,
// simple.
constexpr PerPair kBase{
    {{6.8, 14, 8.4}, {6.6, 14, 8.4}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {8, 8, 8}}};
constexpr PerPair kNvlink{{{0.6, 1.25, 4.0},
                           {0.6, 1.9, 3.4},
                           {0, 0, 3.7},
                           {0, 0, 2.8},
                           {0, 0, 25},
                           {0, 0, 25},
                           {0, 0, 4.0}}};
constexpr PerPair kPci{{{1.0, 1.9, 4.0},
                        {1.0, 2.5, 5.7},
                        {0, 0, 3.7},
                        {0, 0, 2.8},
                        {0, 0, 0},
                        {0, 0, 0},
                        {0, 0, 4.0}}};
constexpr PerPair kNet{
    {{5.0, 8.5, 14}, {2.7, 4.0, 14}, {0, 0, 31}, {0, 0, 30}, {0, 0, 18}, {0, 0, 20.9}, {0, 0, 14}}};

// Rows: Volta, Ampere, Hopper, Blackwell. Columns: one node, two nodes, more.
using PerScale = std::array<std::array<double, 3>, 4>;
constexpr PerScale kLlMost{{{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}}};
constexpr std::array<double, 4> kRingLl128Channel{20, 20, 36.7, 40};
constexpr PerScale kTreeLl128Channel{
    {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}}};
constexpr PerScale kTreeChannel{
    {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}}};
constexpr PerScale kNvlsTreeChannel{
    {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 80}}};

// The tree's bandwidth by size, from 64 bytes on in powers of two; 1 beyond.
constexpr std::array<std::array<double, 23>, kProtocolCount> kTreeBySize{
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}}};

int Row(const Cluster& cluster) {
  // The formula has NVIDIA's generations only; AMD's GPUs are closest to Hopper.
  return cluster.generation == Generation::kCdna ? static_cast<int>(Generation::kHopper)
                                                 : static_cast<int>(cluster.generation);
}

int Column(const RankLayout& layout) { return layout.nodes == 1 ? 0 : layout.nodes == 2 ? 1 : 2; }

int FloorLog2(int number) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(number))) - 1;
}

bool IsGather(Collective collective) {
  return collective == Collective::kAllGather || collective == Collective::kReduceScatter;
}

double Steps(Collective collective, int ranks) {
  const int passes = FactsOf(collective).passes;
  return passes == 0 ? ranks : static_cast<double>(passes) * (ranks - 1);
}

// Bandwidth of one NVLS channel.
double NvlsChannel(const Cluster& cluster, const RankLayout& layout, Collective collective,
                   int algorithm) {
  const Formula& formula = cluster.formula;
  const double efficiency = cluster.generation == Generation::kBlackwell ? 0.74 : 0.85;
  const int channels = formula.nvls_channels;
  double bandwidth = formula.nvls_gbps * efficiency * (channels - 1) / channels;
  bandwidth *= collective == Collective::kAllReduce
                   ? 2.0
                   : static_cast<double>(layout.per_node - 1) / layout.per_node;
  if (layout.nodes == 1) return bandwidth;
  double inter = formula.inter_gbps;
  if (algorithm == kNvlsTree && layout.nodes <= 2) inter *= 2;
  bandwidth = std::min(bandwidth, inter);
  if (algorithm == kNvlsTree) {
    bandwidth = std::min(bandwidth, kNvlsTreeChannel[Row(cluster)][Column(layout)]);
  }
  return bandwidth;
}

// The bandwidth of a ring or a tree, from the links' bandwidth.
double Corrected(const Cluster& cluster, const RankLayout& layout, Collective collective,
                 int algorithm, int protocol, double bus) {
  const int channels = cluster.formula.channels;
  const int row = Row(cluster);
  const int column = Column(layout);
  // Between nodes LL depends on the CPU rather than on the GPU.
  const int ll_row = layout.nodes == 1 ? row : cluster.formula.amd_cpu ? 1 : 0;
  const double ll_most = kLlMost[ll_row][column];
  if (algorithm == kRing) {
    if (protocol == kLl) bus = std::min(ll_most, 0.5 * bus);
    if (protocol == kLl128) bus = std::min(0.92 * bus, channels * kRingLl128Channel[row]);
    return bus;
  }
  if (collective == Collective::kAllReduce) {
    bus = std::min(0.92 * bus, channels * kTreeChannel[row][column]);
  }
  if (protocol == kLl) bus = std::min(bus / 3.8, ll_most);
  if (protocol == kLl128) {
    const double share = layout.nodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0;
    bus = std::min(bus * share, channels * kTreeLl128Channel[row][column]);
  }
  // One GPU on each node: the tree spans the network with two children at every node.
  if (layout.per_node == 1) bus *= 0.85;
  return bus;
}

double Bandwidth(const Cluster& cluster, const RankLayout& layout, Collective collective,
                 int algorithm, int protocol) {
  const Formula& formula = cluster.formula;
  const double ranks = layout.ranks;
  const double ratio = ranks / Steps(collective, layout.ranks);
  const bool collnet = algorithm == kCollNetDirect || algorithm == kCollNetChain;
  if (algorithm == kNvls || algorithm == kNvlsTree) {
    const double bus = formula.nvls_channels * NvlsChannel(cluster, layout, collective, algorithm);
    return IsGather(collective) ? bus : bus * ratio;
  }
  const double channel = layout.nodes <= 2 || collnet ? formula.intra_gbps : formula.inter_gbps;
  double bus = formula.channels * channel;
  switch (algorithm) {
    case kTree:
    case kRing:
      bus = Corrected(cluster, layout, collective, algorithm, protocol, bus);
      break;
    case kCollNetDirect:
      if (IsGather(collective)) {
        bus = layout.per_node * std::min(formula.intra_gbps, 0.9 * formula.inter_gbps);
      } else {
        double factor = static_cast<double>(layout.per_node) / formula.channels;
        factor -= (factor - 1) / 2;
        bus /= factor;
        if (cluster.generation >= Generation::kHopper) bus *= 0.85;
      }
      break;
    case kPat:
      bus *= 0.75;
      break;
    default:
      break;
  }
  if (algorithm == kRing) return bus * ratio;
  return IsGather(collective) ? bus : bus * 0.5;
}

double Latency(const Cluster& cluster, const RankLayout& layout, Collective collective,
               int algorithm, int protocol) {
  const Formula& formula = cluster.formula;
  const FormulaPair& own = formula.pairs[algorithm][protocol];
  const PerPair& hardware = formula.nvlink ? kNvlink : kPci;
  const double base = own.base_us.value_or(kBase[algorithm][protocol]);
  const double intra = own.hop_us.value_or(hardware[algorithm][protocol]);
  const int net_row = layout.per_node == 1 ? kTree : algorithm;
  const double inter = own.net_us.value_or(kNet[net_row][protocol]) +
                       formula.inter_latency_us * (protocol == kSimple ? 2 : 1);
  const double local = layout.per_node - 1;
  const double depth = FloorLog2(layout.nodes);
  switch (algorithm) {
    case kRing: {
      const double steps = Steps(collective, layout.ranks);
      if (collective == Collective::kBroadcast || collective == Collective::kReduce) {
        // Pipelined: one step shows where every channel has the same order of ranks.
        return base + intra;
      }
      const double crossings =
          (collective == Collective::kAllReduce ? 2.0 : 1.0) * (layout.nodes - 1);
      double overhead = layout.nodes == 1 ? 0 : formula.amd_cpu ? 2.0 : 1.0;
      if (protocol == kSimple) overhead *= 3;
      return base + (steps - crossings) * std::max(intra, overhead) + crossings * inter;
    }
    case kTree:
      return base + 2 * (local * intra + depth * inter);
    case kCollNetDirect:
      return base + 2 * (std::min(1.0, local) * intra + local * 0.4) + inter;
    case kCollNetChain:
      return base + 2 * local * intra + inter;
    case kNvls:
      return intra + (layout.nodes > 1 ? inter : 0);
    case kNvlsTree:
      return base + intra + 2 * depth * inter;
    case kPat:
      return base + depth * inter / 3.5 + 2.8 * layout.ranks;
    default:
      return base;
  }
}

}  // namespace

double FormulaMicros(const Cluster& cluster, const RankLayout& layout, Collective collective,
                     uint64_t bytes, int algorithm, int protocol) {
  double bandwidth = Bandwidth(cluster, layout, collective, algorithm, protocol);
  if (!(bandwidth > 0)) return -1;
  double latency = Latency(cluster, layout, collective, algorithm, protocol);
  if (algorithm == kTree && collective == Collective::kAllReduce && bytes >= 64) {
    const size_t index = static_cast<size_t>(std::bit_width(bytes / 64)) - 1;
    if (index < kTreeBySize[protocol].size()) bandwidth *= kTreeBySize[protocol][index];
  }
  if (algorithm == kRing && protocol == kSimple && collective == Collective::kAllReduce &&
      layout.nodes > 1 &&
      static_cast<double>(bytes) / (cluster.formula.channels * double(layout.ranks)) >= 64) {
    latency *= cluster.generation == Generation::kVolta ? 1.9 : 1.4;
  }
  return latency + static_cast<double>(bytes) / (1000 * bandwidth);
}

}  // namespace diapason::comm::sim
