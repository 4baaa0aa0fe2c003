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
// There are two descriptions in it, on purpose. `formula` is what the library believes about the
// machine; it makes the library's own choice. `pairs` is how the machine really behaves. Were they
// the same, the library would always be right and there would be nothing to tune.

inline constexpr int kAlgorithmCount = kPat + 1;
inline constexpr int kProtocolCount = kSimple + 1;
inline constexpr int kMostRanks = 65536;

enum class Generation : uint8_t { kVolta = 0, kAmpere = 1, kHopper = 2, kBlackwell = 3, kCdna = 4 };

// The wires, for what no algorithm is chosen for: sends, receives, alltoall, barriers.
struct Links {
  double launch_us = 5;   // every call costs this
  double intra_gbps = 1;  // one GPU to the others of its node, one direction
  double intra_us = 1;
  double inter_gbps = 0;  // one node to the others, all its adapters together
  double inter_us = 0;
};

// How one algorithm with one protocol really behaves.
struct PairCost {
  double base_us = 0;
  double hop_us = 0;        // one step between GPUs of a node
  double net_us = 0;        // one step between nodes
  double channel_us = 0;    // every channel beyond the first costs this to set going
  double channel_gbps = 1;  // what one channel moves
  double gbps = 1;          // what all channels together can move inside a node
  double net_gbps = 0;      // the same across nodes, with all GPUs of a node taking part
  // How latency and transfer go together. 1: one after the other. 0.5: the pipeline fills as slowly
  // as it can. Above 1: they overlap.
  double overlap = 1;
};

// Replaces constants of the library's formula, for libraries and machines that differ.
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
  // A call uses one channel for every so many bytes of traffic at least.
  double channel_bytes = 32768;
  // A number of channels that was asked for is used as it is, however small the message.
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
  double rank_sigma = 0;   // what each rank adds to it
  double spike_share = 0;  // calls that take spike_factor times as long
  double spike_factor = 1;
};

// Ranks that are slower than the others: a share of all ranks, or those named.
struct Straggler {
  std::vector<int> ranks;
  double share = 0;
  double factor = 1;
  double often = 1;  // the share of calls in which they are
};

struct Compute {
  double multiprocessors = 1;
  double channel_cost = 1;         // multiprocessors that a channel takes from compute
  double collective_slowdown = 0;  // a collective takes so much longer while the GPU computes
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
  // What is on offer; a pair without a value is not.
  std::array<std::array<std::optional<PairCost>, kProtocolCount>, kAlgorithmCount> pairs;
  // Of the file's text: two ranks that mean different clusters have different ones.
  uint64_t digest = 0;

  int ranks() const { return nodes * gpus_per_node; }
};

// "8 x A100, one node (simulated)": for people.
std::string Describe(const Cluster& cluster);

// Reads a description. `name` is what errors call it; they give line and column.
Result<Cluster> ParseCluster(std::string_view text, const std::string& name);

// A shipped name ("h100x8"), or the path of a TOML file: whatever holds a '/' or ends in ".toml".
Result<Cluster> LoadCluster(const std::string& name_or_path);

std::vector<std::string> ClusterNames();
// The text of a shipped description.
Result<std::string_view> ShippedText(const std::string& name);

}  // namespace diapason::comm::sim
