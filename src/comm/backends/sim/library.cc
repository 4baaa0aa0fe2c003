#include "comm/backends/sim/library.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "domain/collectives.h"
#include "domain/decision.h"

namespace diapason::comm::sim {
namespace {

// Threads of a kernel, and the bytes per thread below which channels are dropped.
struct Threads {
  double most;
  double bytes_each;
};

Threads ThreadsOf(const RankLayout& layout, int algorithm, int protocol) {
  switch (protocol) {
    case kLl:
      return {512, algorithm == kRing ? 8.0 * layout.ranks : 8.0};
    case kLl128:
      return {640, 8};
    default:
      return {512, 64};
  }
}

std::string PairName(const Cluster& cluster, Collective collective, int algorithm, int protocol) {
  Config config;
  config.algorithm = algorithm;
  config.protocol = protocol;
  return ConfigText(cluster.library, collective, config);
}

Status CheckConfig(const Cluster& cluster, Collective collective, const Config& config) {
  if (config.IsDefault()) return {};
  const std::string library(LibraryTitle(cluster.library));
  if (!CanChoose(cluster.library, collective)) {
    return Invalid(std::string(CollectiveName(collective)) +
                   " is made of sends and receives: " + library + " has nothing to choose there");
  }
  if (config.segment_bytes != 0) return Invalid(library + " has no segment size");
  const int limit = ChannelLimit(cluster.library);
  if (config.channels < 0 || config.channels > limit) {
    return Invalid(Format("{} channels; {} takes 1 to {}", config.channels, library, limit));
  }
  if (config.algorithm < kKeep || config.algorithm >= kAlgorithmCount) {
    return Invalid(Format("{} has no algorithm number {}", library, config.algorithm));
  }
  if (config.protocol < kKeep || config.protocol >= kProtocolCount) {
    return Invalid(Format("{} has no protocol number {}", library, config.protocol));
  }
  return {};
}

// A rule of the library for this call, if there is one.
const LibraryRule* FindRule(const Cluster& cluster, const RankLayout& layout, Collective collective,
                            uint64_t bytes) {
  for (const LibraryRule& choice : cluster.choices) {
    if (choice.collective == collective && layout.nodes >= choice.min_nodes &&
        layout.nodes <= choice.max_nodes && bytes <= choice.max_bytes &&
        WhyNotOffered(cluster, layout, collective, choice.algorithm, choice.protocol).empty()) {
      return &choice;
    }
  }
  return nullptr;
}

// The pair the library believes to be cheapest among those that `config` allows. False: none is.
bool CheapestPair(const Cluster& cluster, const RankLayout& layout, Collective collective,
                  uint64_t bytes, Config* config) {
  double least = -1;
  Config best = *config;
  for (int algorithm = 0; algorithm < kAlgorithmCount; ++algorithm) {
    if (config->algorithm != kKeep && config->algorithm != algorithm) continue;
    for (int protocol = 0; protocol < kProtocolCount; ++protocol) {
      if (config->protocol != kKeep && config->protocol != protocol) continue;
      if (!WhyNotOffered(cluster, layout, collective, algorithm, protocol).empty()) continue;
      const double micros = FormulaMicros(cluster, layout, collective, bytes, algorithm, protocol);
      if (micros < 0 || (least >= 0 && micros >= least)) continue;
      least = micros;
      best.algorithm = algorithm;
      best.protocol = protocol;
    }
  }
  *config = best;
  return least >= 0;
}

Status NothingOnOffer(const Cluster& cluster, const RankLayout& layout, Collective collective,
                      const Config& config) {
  const std::string wanted = PairName(cluster, collective, config.algorithm, config.protocol);
  if (config.algorithm != kKeep && config.protocol != kKeep) {
    return Unavailable(
        wanted + " is not on offer: " +
        WhyNotOffered(cluster, layout, collective, config.algorithm, config.protocol));
  }
  return Unavailable(Format("the simulated cluster '{}' has nothing for {} that is {}",
                            cluster.name, std::string(CollectiveName(collective)), wanted));
}

}  // namespace

Result<RankLayout> FillNodes(const Cluster& cluster, int ranks) {
  if (ranks < 1 || ranks > cluster.ranks()) {
    return Invalid(Format("{} ranks; the simulated cluster '{}' has 1 to {}", ranks, cluster.name,
                          cluster.ranks()));
  }
  RankLayout layout;
  layout.ranks = ranks;
  layout.nodes = (ranks + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
  layout.per_node = std::min(ranks, cluster.gpus_per_node);
  return layout;
}

std::string WhyNotOffered(const Cluster& cluster, const RankLayout& layout, Collective collective,
                          int algorithm, int protocol) {
  const auto library = [&] { return std::string(LibraryTitle(cluster.library)); };
  if (!PairExists(collective, algorithm, protocol)) {
    return library() + " never runs it for " + std::string(CollectiveName(collective));
  }
  if (algorithm >= kAlgorithmCount || !cluster.pairs[algorithm][protocol]) {
    return "the simulated cluster '" + cluster.name + "' does not have it";
  }
  switch (algorithm) {
    case kNvls:
      if (layout.nodes > 1) return "it works inside one node";
      break;
    case kNvlsTree:
      if (layout.nodes == 1) return "it needs several nodes";
      if (layout.per_node == 1) return "it needs several ranks on a node";
      break;
    case kCollNetDirect:
    case kCollNetChain:
      if (layout.nodes == 1) return "it needs several nodes";
      break;
    case kPat:
      if (layout.per_node > 1) return "it needs one rank on each node";
      break;
    default:
      break;
  }
  return "";
}

int ChannelsUsed(const Cluster& cluster, const RankLayout& layout, Collective collective,
                 uint64_t bytes, int algorithm, int protocol, int asked) {
  const Formula& formula = cluster.formula;
  const bool nvls = algorithm == kNvls || algorithm == kNvlsTree;
  const int most = nvls ? formula.nvls_channels : formula.channels;
  if (asked > 0 && formula.exact_channels) return std::min(asked, most);
  const double size = static_cast<double>(bytes);

  double traffic = size * (collective == Collective::kAllReduce ? 2 : 1);
  if (protocol == kLl) traffic *= 4;
  double channels =
      std::min<double>(most, std::max(1.0, std::ceil(traffic / formula.channel_bytes)));
  if (asked > 0) {
    channels = std::min<double>(channels, asked);
  } else if (!nvls) {
    const Threads threads = ThreadsOf(layout, algorithm, protocol);
    channels =
        std::min(channels, std::max(1.0, std::floor(size / (threads.most * threads.bytes_each))));
  }
  return static_cast<int>(channels);
}

Result<SimCost> Estimate(const Cluster& cluster, const RankLayout& layout, Collective collective,
                         uint64_t bytes, const Config& config) {
  RETURN_IF_ERROR(CheckConfig(cluster, collective, config));
  SimCost cost;
  if (layout.ranks <= 1) {
    // A copy; the library ignores the configuration.
    cost.seconds = SendSeconds(cluster, true, bytes);
    return cost;
  }
  if (!CanChoose(cluster.library, collective)) {
    cost.seconds = AllToAllSeconds(cluster, layout, bytes);
    return cost;
  }
  cost.config = config;
  double channel_bytes = 0;
  const bool free = config.algorithm == kKeep && config.protocol == kKeep;
  const LibraryRule* rule = free ? FindRule(cluster, layout, collective, bytes) : nullptr;
  if (rule != nullptr) {
    cost.config.algorithm = rule->algorithm;
    cost.config.protocol = rule->protocol;
    channel_bytes = rule->channel_bytes;
  } else if (!CheapestPair(cluster, layout, collective, bytes, &cost.config)) {
    return NothingOnOffer(cluster, layout, collective, config);
  }
  const int algorithm = cost.config.algorithm;
  const int protocol = cost.config.protocol;
  int& channels = cost.config.channels;
  if (channel_bytes > 0 && channels == 0) {
    const double wanted = std::ceil(static_cast<double>(bytes) / channel_bytes);
    channels = static_cast<int>(std::clamp<double>(wanted, 1, cluster.formula.channels));
  } else {
    channels = ChannelsUsed(cluster, layout, collective, bytes, algorithm, protocol, channels);
  }
  cost.seconds = MachineSeconds(cluster, layout, collective, bytes, algorithm, protocol, channels);
  return cost;
}

Result<SimCost> Estimate(const Cluster& cluster, int ranks, Collective collective, uint64_t bytes,
                         const Config& config) {
  ASSIGN_OR_RETURN(const RankLayout layout, FillNodes(cluster, ranks));
  return Estimate(cluster, layout, collective, bytes, config);
}

std::vector<Config> Configurations(const Cluster& cluster, const RankLayout& layout,
                                   Collective collective) {
  std::vector<Config> configs;
  if (layout.ranks <= 1) return configs;
  for (int algorithm = 0; algorithm < kAlgorithmCount; ++algorithm) {
    const bool nvls = algorithm == kNvls || algorithm == kNvlsTree;
    const int most = nvls ? cluster.formula.nvls_channels : cluster.formula.channels;
    for (int protocol = 0; protocol < kProtocolCount; ++protocol) {
      if (!WhyNotOffered(cluster, layout, collective, algorithm, protocol).empty()) continue;
      for (int channels = 1; channels < most; channels *= 2) {
        configs.push_back({algorithm, protocol, channels});
      }
      configs.push_back({algorithm, protocol, most});
    }
  }
  return configs;
}

double BusBandwidth(Collective collective, int ranks, uint64_t bytes, double seconds) {
  if (!(seconds > 0)) return 0;
  return static_cast<double>(bytes) * BusFactor(collective, ranks) / seconds;
}

}  // namespace diapason::comm::sim
