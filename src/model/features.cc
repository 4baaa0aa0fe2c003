#include "model/features.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "domain/collectives.h"

namespace diapason::model {
namespace {

enum FeatureKind {
  kLog2Bytes,
  kLog2Channels,
  kLog2BytesPerChannel,
  kLog2BytesPerRank,
  kLog2Ranks,
  kLog2Nodes,
  kLog2RanksPerNode,
  kLog2Steps,
  kLog2Latency,
  kLog2LaneTime,
  kLog2Segment,
  // Columns of the original predictor.
  kNodes,
  kGpus,
  kBytes,
  kLogSize,
  kGpusPerNode,
  kBytesPerGpu,
  kAlgorithmNumber,
  kProtocolNumber,
  kChannels,
  // Indicator columns.
  kIsCollective,
  kIsAlgorithm,
  kIsProtocol,
};

struct Plain {
  const char* name;
  FeatureKind kind;
};
constexpr Plain kPhysical[] = {
    {"log2_bytes", kLog2Bytes},
    {"log2_channels", kLog2Channels},
    {"log2_bytes_per_channel", kLog2BytesPerChannel},
    {"log2_bytes_per_rank", kLog2BytesPerRank},
    {"log2_ranks", kLog2Ranks},
    {"log2_nodes", kLog2Nodes},
    {"log2_ranks_per_node", kLog2RanksPerNode},
    {"log2_steps", kLog2Steps},
    {"log2_latency", kLog2Latency},
    {"log2_lane_time", kLog2LaneTime},
    {"log2_segment", kLog2Segment},
};
constexpr Plain kOriginal[] = {
    {"num_nodes", kNodes},           {"num_gpus", kGpus},
    {"size_bytes", kBytes},          {"log_size", kLogSize},
    {"gpus_per_node", kGpusPerNode}, {"bytes_per_gpu", kBytesPerGpu},
    {"algo", kAlgorithmNumber},      {"proto", kProtocolNumber},
    {"nchannels", kChannels},
};
constexpr char kCollectivePrefix[] = "collective=";
constexpr char kAlgorithmPrefix[] = "algorithm=";
constexpr char kProtocolPrefix[] = "protocol=";

// The original's numbers: ring 1, tree 2, others behind; simple 0, LL128 1, LL behind.
int OriginalAlgorithm(Library library, int algorithm) {
  if (!AsksTuner(library)) return algorithm;
  return algorithm == kRing ? 1 : algorithm == kTree ? 2 : algorithm + 1;
}
int OriginalProtocol(Library library, int protocol) {
  if (!AsksTuner(library)) return protocol;
  return protocol == kSimple ? 0 : protocol == kLl128 ? 1 : 2;
}

double Log2(double value) { return std::log2(std::max(1.0, value)); }

// The number of sequential transfers between ranks.
double Steps(Library library, const CallPlace& place, const Config& config) {
  const double around = place.ranks - 1;
  const double deep = Log2(place.ranks);
  const double passes = std::max(1, FactsOf(place.collective).passes);
  if (!AsksTuner(library) || config.algorithm == kRing) return passes * around;
  return passes * deep;
}

// Minimum microseconds per step, roughly the same on every machine.
double StepLatency(const Config& config) {
  switch (config.protocol) {
    case kLl:
      return 0.6;
    case kLl128:
      return 1.2;
    default:
      return 4;
  }
}

// Bytes on the wire per byte of data.
double WireBytes(const Config& config) {
  switch (config.protocol) {
    case kLl:
      return 2;
    case kLl128:
      return 128.0 / 120;
    default:
      return 1;
  }
}

template <typename Range>
const Plain* FindName(const Range& range, const std::string& name) {
  for (const Plain& one : range) {
    if (name == one.name) return &one;
  }
  return nullptr;
}

}  // namespace

Status Features::Add(const std::string& name) {
  Column column;
  const Plain* plain = FindName(kPhysical, name);
  if (plain == nullptr) plain = FindName(kOriginal, name);
  const auto behind = [&](const char* prefix) -> std::string {
    return name.starts_with(prefix) ? name.substr(std::string(prefix).size()) : "";
  };
  const auto number = [](const std::string& text, int limit) {
    uint64_t value = 0;
    return ParseUnsigned(text, &value) && value < static_cast<uint64_t>(limit)
               ? static_cast<int>(value)
               : -1;
  };
  if (plain != nullptr) {
    column.kind = plain->kind;
  } else if (const std::string word = behind(kCollectivePrefix); !word.empty()) {
    ASSIGN_OR_RETURN(const Collective parsed, ParseCollective(library_, word));
    column = {kIsCollective, static_cast<int>(parsed)};
  } else if (const std::string algorithm = behind(kAlgorithmPrefix); !algorithm.empty()) {
    column = {kIsAlgorithm, number(algorithm, 256)};
  } else if (const std::string protocol = behind(kProtocolPrefix); !protocol.empty()) {
    column = {kIsProtocol, number(protocol, 256)};
  } else {
    return Invalid("unknown feature '" + name + "'");
  }
  if (column.value < 0) return Invalid("unknown feature '" + name + "'");
  names_.push_back(name);
  columns_.push_back(column);
  return {};
}

Result<Features> Features::Named(Library library, const std::vector<std::string>& names) {
  Features features;
  features.library_ = library;
  for (const std::string& name : names) {
    RETURN_IF_ERROR(features.Add(name));
  }
  return features;
}

Features Features::OfTime(const Grid& grid) {
  std::set<int> collectives;
  std::set<int> algorithms;
  std::set<int> protocols;
  std::set<int64_t> segments;
  std::set<std::pair<int, int>> places;
  bool channels = false;
  for (const MeasuredPlace& scene : grid.scenes) {
    collectives.insert(static_cast<int>(scene.place.collective));
    places.insert({scene.place.nodes, scene.place.ranks});
    for (const MeasuredSize& context : scene.contexts) {
      for (const MeasuredConfig& cell : context.cells) {
        if (cell.config.IsDefault()) continue;
        algorithms.insert(cell.config.algorithm);
        protocols.insert(cell.config.protocol);
        segments.insert(cell.config.segment_bytes);
        channels |= cell.config.channels > 0;
      }
    }
  }
  Features features;
  features.library_ = grid.library;
  // If all places have the same number of ranks per node, ranks and nodes are redundant; a constant
  // or redundant column only costs time.
  bool even = true;
  for (const auto& [nodes, ranks] : places) {
    even = even && ranks * places.begin()->first == places.begin()->second * nodes;
  }
  for (const auto& one : kPhysical) {
    const bool of_place = one.kind >= kLog2BytesPerRank && one.kind <= kLog2RanksPerNode;
    const bool of_channels = one.kind == kLog2Channels || one.kind == kLog2BytesPerChannel;
    if (of_place && places.size() < 2) continue;
    if (even && (one.kind == kLog2Nodes || one.kind == kLog2RanksPerNode)) continue;
    if (of_channels && !channels) continue;
    if (one.kind == kLog2Segment && segments.size() < 2) continue;
    (void)features.Add(one.name);
  }
  // One column fewer than values is sufficient.
  const auto words = [&](const std::set<int>& values, auto name) {
    for (auto value = values.begin(); value != values.end() && std::next(value) != values.end();
         ++value) {
      if (*value >= 0) (void)features.Add(name(*value));
    }
  };
  words(collectives, [](int value) {
    return kCollectivePrefix + std::string(CollectiveName(static_cast<Collective>(value)));
  });
  words(algorithms, [](int value) { return kAlgorithmPrefix + std::to_string(value); });
  words(protocols, [](int value) { return kProtocolPrefix + std::to_string(value); });
  return features;
}

Features Features::OfBandwidth(Library library) {
  Features features;
  features.library_ = library;
  for (const auto& one : kOriginal) (void)features.Add(one.name);
  return features;
}

void Features::Fill(const CallPlace& place, uint64_t bytes, const Config& config,
                    float* row) const {
  const auto size = static_cast<double>(std::max<uint64_t>(1, bytes));
  const double channels = std::max(1, config.channels);
  const double ranks = std::max(1, place.ranks);
  const double nodes = std::max(1, place.nodes);
  for (size_t i = 0; i < columns_.size(); ++i) {
    double value = 0;
    switch (columns_[i].kind) {
      case kLog2Bytes:
      case kLogSize:
        value = Log2(size);
        break;
      case kLog2Channels:
        value = Log2(channels);
        break;
      case kLog2BytesPerChannel:
        value = Log2(size) - Log2(channels);
        break;
      case kLog2BytesPerRank:
        value = Log2(size) - Log2(ranks);
        break;
      case kLog2Ranks:
        value = Log2(ranks);
        break;
      case kLog2Nodes:
        value = Log2(nodes);
        break;
      case kLog2RanksPerNode:
        value = Log2(ranks / nodes);
        break;
      case kLog2Steps:
        value = Log2(Steps(library_, place, config));
        break;
      case kLog2Latency:
        value = std::log2(std::max(1.0, Steps(library_, place, config)) * StepLatency(config));
        break;
      case kLog2LaneTime:
        value = std::log2(size * WireBytes(config) *
                          std::max(0.1, BusFactor(place.collective, place.ranks)) / channels);
        break;
      case kLog2Segment:
        value = Log2(static_cast<double>(std::max<int64_t>(0, config.segment_bytes)));
        break;
      case kNodes:
        value = nodes;
        break;
      case kGpus:
        value = ranks;
        break;
      case kBytes:
        value = size;
        break;
      case kGpusPerNode:
        value = ranks / nodes;
        break;
      case kBytesPerGpu:
        value = size / ranks;
        break;
      case kAlgorithmNumber:
        value = OriginalAlgorithm(library_, config.algorithm);
        break;
      case kProtocolNumber:
        value = OriginalProtocol(library_, config.protocol);
        break;
      case kChannels:
        value = config.channels;
        break;
      case kIsCollective:
        value = static_cast<int>(place.collective) == columns_[i].value ? 1 : 0;
        break;
      case kIsAlgorithm:
        value = config.algorithm == columns_[i].value ? 1 : 0;
        break;
      default:
        value = config.protocol == columns_[i].value ? 1 : 0;
        break;
    }
    row[i] = static_cast<float>(value);
  }
}

}  // namespace diapason::model
