#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "domain/vocabulary.h"

namespace diapason::comm::sim {

// A simulated cluster, as its TOML file describes it (docs/commands/simulate.md lists every key).
// Bandwidths are in 1e9 bytes per second, times in microseconds, as in the files.
//
// It has two descriptions on purpose. `formula` is the library's model of the machine and makes the
// library's own choice. `pairs` is how the machine behaves. If they were the same, the library
// would always be right and there would be nothing to tune.

inline constexpr int kAlgorithmCount = kPat + 1;
inline constexpr int kProtocolCount = kSimple + 1;
inline constexpr int kMostRanks = 65536;

enum class Generation : uint8_t { kVolta = 0, kAmpere = 1, kHopper = 2, kBlackwell = 3, kCdna = 4 };

// The links, for operations without a choice of algorithm: sends, receives, alltoall, barriers.
struct Links {
  double launch_us = 5;   // every call costs this
  double intra_gbps = 1;  // one GPU to the others of its node, one direction
  double intra_us = 1;
  double inter_gbps = 0;  // one node to the others, all its adapters together
  double inter_us = 0;
};

// The actual cost of one algorithm with one protocol.
struct PairCost {
  double base_us = 0;
  double hop_us = 0;        // one step between GPUs of a node
  double net_us = 0;        // one step between nodes
  double channel_us = 0;    // start-up cost of every channel beyond the first
  double channel_gbps = 1;  // what one channel moves
  double gbps = 1;          // the bandwidth of all channels together inside a node
  double net_gbps = 0;      // the same across nodes, with all GPUs of a node taking part
  // How latency and transfer combine. 1: one after the other. 0.5: the pipeline fills as slowly as
  // possible. Above 1: they overlap.
  double overlap = 1;
};

// Overrides constants of the library's formula, for libraries and machines that differ.
struct FormulaPair {
  std::optional<double> base_us;
  std::optional<double> hop_us;
  std::optional<double> net_us;
};

// The inputs of the library's formula, which it gets from its search of the topology.
struct Formula {
  int channels = 1;
  double intra_gbps = 1;  // per channel
  double inter_gbps = 0;
  int nvls_channels = 0;
  double nvls_gbps = 0;
  double inter_latency_us = 0;
  bool nvlink = true;    // else PCI
  bool amd_cpu = false;  // else Intel or other
  // A call uses at most one channel per this many bytes of traffic.
  double channel_bytes = 32768;
  // A requested number of channels is used as it is, however small the message.
  bool exact_channels = false;
  std::array<std::array<FormulaPair, kProtocolCount>, kAlgorithmCount> pairs;
};

// A choice the library makes by rule, before its formula.
struct LibraryRule {
  Collective collective = Collective::kAllReduce;
  int min_nodes = 1;
  int max_nodes = kMostRanks;
  uint64_t max_bytes = UINT64_MAX;
  int algorithm = kKeep;
  int protocol = kKeep;
  double channel_bytes = 0;  // of the message itself; 0: as the formula
};

struct NoiseModel {
  double sigma = 0;        // of the logarithm of a call's duration, the same for all ranks
  double rank_sigma = 0;   // added by each rank
  double spike_share = 0;  // calls that take spike_factor times as long
  double spike_factor = 1;
};

// Ranks that are slower than the others: a share of all ranks, or those named.
struct Straggler {
  std::vector<int> ranks;
  double share = 0;
  double factor = 1;
  double often = 1;  // the fraction of calls in which they are slow
};

struct Compute {
  double multiprocessors = 1;
  double channel_cost = 1;         // multiprocessors that a channel takes from compute
  double collective_slowdown = 0;  // relative slowdown of a collective while the GPU computes
};

struct Cluster {
  std::string name;  // "h100x8", or the path of the file
  std::string title;
  Library library = Library::kNccl;
  Generation generation = Generation::kHopper;
  int nodes = 1;
  int gpus_per_node = 1;
  Links links;
  Formula formula;
  Compute compute;
  NoiseModel noise;
  std::vector<LibraryRule> choices;
  std::vector<Straggler> stragglers;
  // The available pairs; a pair without a value is not available.
  std::array<std::array<std::optional<PairCost>, kProtocolCount>, kAlgorithmCount> pairs;
  // Digest of the file's text: ranks with different clusters have different digests.
  uint64_t digest = 0;

  int ranks() const { return nodes * gpus_per_node; }
};

// "8 x A100, one node (simulated)": for the user.
std::string Describe(const Cluster& cluster);

// Reads a description. `name` is what errors call it; they give line and column.
Result<Cluster> ParseCluster(std::string_view text, const std::string& name);

// A shipped name ("h100x8"), or the path of a TOML file, which contains a '/' or ends in ".toml".
Result<Cluster> LoadCluster(const std::string& name_or_path);

std::vector<std::string> ClusterNames();
// The text of a shipped description.
Result<std::string_view> ShippedText(const std::string& name);

}  // namespace diapason::comm::sim
