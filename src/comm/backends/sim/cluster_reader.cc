// The strict reader of cluster files: unknown keys and numbers out of range are errors with their
// position.
#include "base/encoding.h"
#include "base/text.h"
#include "base/toml_section.h"
#include "comm/backends/sim/cluster.h"

namespace diapason::comm::sim {
namespace {

using tomlfile::DamagedToml;
using tomlfile::Reader;
using tomlfile::Section;

constexpr double kMostMicros = 1e9;
constexpr double kMostGbps = 1e6;

// Calls visit(algorithm, protocol, section) for every [key.algorithm.protocol].
template <typename Visit>
void ForEachPair(Reader* reader, const toml::table& table, const std::string& key, Visit visit) {
  for (const auto& [algorithm_key, algorithm_node] : table) {
    const Result<int> algorithm =
        ParseAlgorithm(Library::kNccl, Collective::kAllReduce, algorithm_key.str());
    if (!algorithm.ok()) return reader->Fail(algorithm_key.source(), algorithm.status().message());
    const toml::table* protocols = algorithm_node.as_table();
    if (protocols == nullptr) {
      return reader->Fail(algorithm_key.source(), "expected [" + key + ".ALGORITHM.PROTOCOL]");
    }
    for (const auto& [protocol_key, protocol_node] : *protocols) {
      const Result<int> protocol = ParseProtocol(Library::kNccl, protocol_key.str());
      if (!protocol.ok()) return reader->Fail(protocol_key.source(), protocol.status().message());
      const toml::table* pair = protocol_node.as_table();
      if (pair == nullptr) {
        return reader->Fail(protocol_key.source(), "expected [" + key + ".ALGORITHM.PROTOCOL]");
      }
      if (!PairExists(Collective::kAllReduce, algorithm.value(), protocol.value()) &&
          !PairExists(Collective::kAllGather, algorithm.value(), protocol.value())) {
        return reader->Fail(protocol_key.source(), Format("no library has {:.20} with {:.20}",
                                                          std::string(algorithm_key.str()),
                                                          std::string(protocol_key.str())));
      }
      Section section(reader, *pair,
                      "[" + key + "." + std::string(algorithm_key.str()) + "." +
                          std::string(protocol_key.str()) + "]");
      visit(algorithm.value(), protocol.value(), &section);
      section.Finish();
      if (reader->failed()) return;
    }
  }
}

void ReadLinks(Section* section, bool several_nodes, Links* links) {
  section->Require({"intra_gbps", "intra_us"});
  if (several_nodes) section->Require({"inter_gbps", "inter_us"});
  section->Number("launch_us", 0, kMostMicros, &links->launch_us);
  section->Number("intra_gbps", 1e-3, kMostGbps, &links->intra_gbps);
  section->Number("intra_us", 0, kMostMicros, &links->intra_us);
  section->Number("inter_gbps", 1e-3, kMostGbps, &links->inter_gbps);
  section->Number("inter_us", 0, kMostMicros, &links->inter_us);
  section->Finish();
}

void ReadFormula(Reader* reader, Section* section, bool several_nodes, Library library,
                 Formula* formula) {
  section->Require({"channels", "intra_gbps"});
  if (several_nodes) section->Require({"inter_gbps"});
  section->Integer("channels", 1, ChannelLimit(library), &formula->channels);
  section->Number("intra_gbps", 1e-3, kMostGbps, &formula->intra_gbps);
  section->Number("inter_gbps", 1e-3, kMostGbps, &formula->inter_gbps);
  section->Integer("nvls_channels", 1, ChannelLimit(library), &formula->nvls_channels);
  section->Number("nvls_gbps", 1e-3, kMostGbps, &formula->nvls_gbps);
  section->Number("inter_latency_us", 0, kMostMicros, &formula->inter_latency_us);
  section->Flag("nvlink", &formula->nvlink);
  section->Flag("amd_cpu", &formula->amd_cpu);
  section->Flag("exact_channels", &formula->exact_channels);
  uint64_t channel_bytes = static_cast<uint64_t>(formula->channel_bytes);
  section->Bytes("channel_bytes", 1, &channel_bytes);
  formula->channel_bytes = static_cast<double>(channel_bytes);
  if (const toml::table* pairs = section->Table("pair")) {
    ForEachPair(reader, *pairs, "formula.pair", [&](int algorithm, int protocol, Section* pair) {
      FormulaPair& constants = formula->pairs[algorithm][protocol];
      pair->Number("base_us", 0, kMostMicros, &constants.base_us);
      pair->Number("hop_us", 0, kMostMicros, &constants.hop_us);
      pair->Number("net_us", 0, kMostMicros, &constants.net_us);
    });
  }
  section->Finish();
}

void ReadPair(Section* section, bool several_nodes, PairCost* cost) {
  section->Require({"base_us", "hop_us", "channel_gbps", "gbps"});
  if (several_nodes) section->Require({"net_us", "net_gbps"});
  section->Number("base_us", 0, kMostMicros, &cost->base_us);
  section->Number("hop_us", 0, kMostMicros, &cost->hop_us);
  section->Number("net_us", 0, kMostMicros, &cost->net_us);
  section->Number("channel_us", 0, kMostMicros, &cost->channel_us);
  section->Number("channel_gbps", 1e-3, kMostGbps, &cost->channel_gbps);
  section->Number("gbps", 1e-3, kMostGbps, &cost->gbps);
  section->Number("net_gbps", 1e-3, kMostGbps, &cost->net_gbps);
  section->Number("overlap", 0.5, 4, &cost->overlap);
}

void ReadChoice(Section* section, Library library, LibraryRule* choice) {
  section->Require({"collective", "algorithm", "protocol"});
  section->Parsed(
      "collective", [&](const std::string& text) { return ParseCollective(library, text); },
      &choice->collective);
  section->Parsed(
      "algorithm",
      [&](const std::string& text) { return ParseAlgorithm(library, choice->collective, text); },
      &choice->algorithm);
  section->Parsed(
      "protocol", [&](const std::string& text) { return ParseProtocol(library, text); },
      &choice->protocol);
  section->Integer("min_nodes", 1, kMostRanks, &choice->min_nodes);
  section->Integer("max_nodes", 1, kMostRanks, &choice->max_nodes);
  section->Bytes("max_bytes", 0, &choice->max_bytes);
  uint64_t channel_bytes = 0;
  section->Bytes("channel_bytes", 1, &channel_bytes);
  choice->channel_bytes = static_cast<double>(channel_bytes);
  section->Finish();
}

void ReadStraggler(Reader* reader, Section* section, int ranks, Straggler* straggler) {
  section->Require({"factor"});
  if (section->Has("ranks") == section->Has("share")) {
    reader->Fail(section->source(), "[[straggler]] needs either 'ranks' or 'share'");
  }
  section->Ranks("ranks", ranks, &straggler->ranks);
  section->Number("share", 0, 1, &straggler->share);
  section->Number("factor", 1, 1e6, &straggler->factor);
  section->Number("often", 0, 1, &straggler->often);
  section->Finish();
}

void ReadNoise(Section* section, NoiseModel* noise) {
  section->Number("sigma", 0, 2, &noise->sigma);
  section->Number("rank_sigma", 0, 2, &noise->rank_sigma);
  section->Number("spike_share", 0, 1, &noise->spike_share);
  section->Number("spike_factor", 1, 1e6, &noise->spike_factor);
  section->Finish();
}

void ReadCompute(Section* section, Compute* compute) {
  section->Require({"multiprocessors"});
  section->Number("multiprocessors", 1, 1e5, &compute->multiprocessors);
  section->Number("channel_cost", 0, 1e3, &compute->channel_cost);
  section->Number("collective_slowdown", 0, 100, &compute->collective_slowdown);
  section->Finish();
}

void ReadMachine(Reader* reader, Section* root, Cluster* cluster) {
  root->Require({"title", "library", "generation", "nodes", "gpus_per_node", "link", "formula",
                 "compute", "pair"});
  root->Text("title", 120, &cluster->title);
  int library = static_cast<int>(cluster->library);
  root->Word("library", {"nccl", "rccl"}, &library);
  cluster->library = static_cast<Library>(library);
  int generation = static_cast<int>(cluster->generation);
  root->Word("generation", {"volta", "ampere", "hopper", "blackwell", "cdna"}, &generation);
  cluster->generation = static_cast<Generation>(generation);
  root->Integer("nodes", 1, kMostRanks, &cluster->nodes);
  root->Integer("gpus_per_node", 1, 1024, &cluster->gpus_per_node);
  if (int64_t{cluster->nodes} * cluster->gpus_per_node > kMostRanks) {
    reader->Fail(root->source(), Format("more than {} GPUs", kMostRanks));
  }
}

void Read(Reader* reader, const toml::table& table, Cluster* cluster) {
  Section root(reader, table, "the description");
  ReadMachine(reader, &root, cluster);
  if (reader->failed()) return;
  const bool several = cluster->nodes > 1;
  if (const toml::table* found = root.Table("link")) {
    Section section(reader, *found, "[link]");
    ReadLinks(&section, several, &cluster->links);
  }
  if (const toml::table* found = root.Table("formula")) {
    Section section(reader, *found, "[formula]");
    ReadFormula(reader, &section, several, cluster->library, &cluster->formula);
  }
  if (const toml::table* found = root.Table("compute")) {
    Section section(reader, *found, "[compute]");
    ReadCompute(&section, &cluster->compute);
  }
  if (const toml::table* found = root.Table("noise")) {
    Section section(reader, *found, "[noise]");
    ReadNoise(&section, &cluster->noise);
  }
  for (const toml::table* found : root.Tables("choice")) {
    Section section(reader, *found, "[[choice]]");
    ReadChoice(&section, cluster->library, &cluster->choices.emplace_back());
  }
  for (const toml::table* found : root.Tables("straggler")) {
    Section section(reader, *found, "[[straggler]]");
    ReadStraggler(reader, &section, cluster->ranks(), &cluster->stragglers.emplace_back());
  }
  if (const toml::table* found = root.Table("pair")) {
    ForEachPair(reader, *found, "pair", [&](int algorithm, int protocol, Section* section) {
      ReadPair(section, several, &cluster->pairs[algorithm][protocol].emplace());
    });
  }
  root.Finish();
  if (reader->failed()) return;

  const auto& pairs = cluster->pairs;
  if (!pairs[kRing][kSimple]) {
    reader->Fail(table.source(), "there is no [pair.ring.simple], which every collective can run");
  }
  if ((pairs[kNvls][kSimple] || pairs[kNvlsTree][kSimple]) &&
      (cluster->formula.nvls_channels == 0 || cluster->formula.nvls_gbps == 0)) {
    reader->Fail(table.source(), "NVLS needs 'nvls_channels' and 'nvls_gbps' in [formula]");
  }
}

}  // namespace

Result<Cluster> ParseCluster(std::string_view text, const std::string& name) {
  Reader reader(name);
  Cluster cluster;
  cluster.name = name;
  cluster.digest = Fnv1a64(text);
  try {
    const toml::table parsed = toml::parse(text);
    Read(&reader, parsed, &cluster);
  } catch (const toml::parse_error& error) {
    reader.Fail(error.source(), std::string(error.description()));
  } catch (const DamagedToml&) {
    return Invalid(name + ": this is no TOML");
  }
  if (reader.failed()) return reader.status();
  return cluster;
}

}  // namespace diapason::comm::sim
