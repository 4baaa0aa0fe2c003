#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/ranks.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/json_text.h"
#include "cli/framework/read_by.h"
#include "cli/framework/words.h"
#include "comm/backends/sim/cluster.h"
#include "comm/backends/sim/library.h"
#include "domain/decision.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using comm::sim::Cluster;
using comm::sim::RankLayout;
using comm::sim::SimCost;
using nlohmann::ordered_json;
using report::Table;

struct SimulateOptions {
  std::string cluster;
  std::string collective = "allreduce";
  std::string sizes = "1K:1G:x4";
  int ranks = 0;
  bool all = false;
  bool show = false;
  bool json = false;
};

// The results for one size.
struct SimulatedRow {
  uint64_t bytes = 0;
  SimCost chosen;
  SimCost best;
  std::vector<SimCost> all;  // the configurations that really run, each once, fastest first
};

struct SimulatedCall {
  Cluster cluster;
  RankLayout layout;
  Collective collective = Collective::kAllReduce;
  std::vector<uint64_t> sizes;
};

// Times closer than this count as equal.
constexpr double kWorthIt = 1.005;

void Print(const ordered_json& json) { PrintOut("{}\n", JsonText(json)); }

std::string TimeText(double seconds) {
  if (seconds < 1e-3) return Format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return Format("{:.2f} ms", seconds * 1e3);
  return Format("{:.2f} s", seconds);
}

std::string BandwidthText(const SimulatedCall& question, const SimulatedRow& row,
                          const SimCost& cost) {
  return Format("{:.2f}", 1e-9 * comm::sim::BusBandwidth(question.collective, question.layout.ranks,
                                                         row.bytes, cost.seconds));
}

std::string ConfigName(const SimulatedCall& question, const SimCost& cost) {
  if (cost.config.IsDefault()) return "nothing to choose";
  return ConfigText(question.cluster.library, question.collective, cost.config);
}

Result<int> List(bool json) {
  Table table({"cluster", "nodes", "GPUs", "library", "description"});
  table.SetAlign({Table::Align::kLeft, Table::Align::kRight, Table::Align::kRight});
  ordered_json list = ordered_json::array();
  for (const std::string& name : comm::sim::ClusterNames()) {
    ASSIGN_OR_RETURN(const Cluster loaded, comm::sim::LoadCluster(name));
    const Cluster& cluster = loaded;
    const std::string library(LibraryName(cluster.library));
    table.Add(
        {name, Format("{}", cluster.nodes), Format("{}", cluster.ranks()), library, cluster.title});
    list.push_back({{"name", name},
                    {"nodes", cluster.nodes},
                    {"gpus", cluster.ranks()},
                    {"library", library},
                    {"title", cluster.title}});
  }
  if (json) {
    Print({{"simulated", true}, {"clusters", list}});
  } else {
    PrintOut("simulated clusters\n\n{}\n", table.Text());
    PrintOut(
        "`diapason simulate NAME` estimates collectives on one of them, --show prints its "
        "description.\n");
  }
  return kExitFine;
}

Result<int> Show(const std::string& name) {
  RETURN_IF_ERROR(comm::sim::LoadCluster(name));
  const Result<std::string_view> shipped = comm::sim::ShippedText(name);
  if (shipped.ok()) {
    PrintOut("{}", shipped.value());
    return kExitFine;
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(name, size_t{1} << 20));
  PrintOut("{}", text);
  return kExitFine;
}

// Collective names of Gloo: the simulated cluster also has alltoall, although no tuner chooses for
// it.
Result<Collective> ParseSimulated(const std::string& name) {
  return ParseCollective(Library::kGloo, name);
}

Result<SimulatedCall> Understand(const SimulateOptions& options) {
  SimulatedCall question;
  ASSIGN_OR_RETURN(Cluster cluster, comm::sim::LoadCluster(options.cluster));
  question.cluster = std::move(cluster);
  ASSIGN_OR_RETURN(const Collective collective, ParseSimulated(options.collective));
  question.collective = collective;
  ASSIGN_OR_RETURN(const std::vector<uint64_t> sizes, ParseSizes(options.sizes));
  question.sizes = sizes;
  const int ranks = options.ranks == 0 ? question.cluster.ranks() : options.ranks;
  ASSIGN_OR_RETURN(const RankLayout layout, comm::sim::FillNodes(question.cluster, ranks));
  question.layout = layout;
  return question;
}

Result<SimulatedRow> Answer(const SimulatedCall& question, uint64_t bytes) {
  SimulatedRow row;
  row.bytes = bytes;
  const auto estimate = [&](const Config& config) {
    return comm::sim::Estimate(question.cluster, question.layout, question.collective, bytes,
                               config);
  };
  ASSIGN_OR_RETURN(const SimCost chosen, estimate({}));
  row.chosen = chosen;
  row.all.push_back(row.chosen);
  for (const Config& config :
       comm::sim::Configurations(question.cluster, question.layout, question.collective)) {
    ASSIGN_OR_RETURN(const SimCost cost, estimate(config));
    const bool known = std::any_of(row.all.begin(), row.all.end(), [&](const SimCost& other) {
      return other.config == cost.config;
    });
    if (!known) row.all.push_back(cost);
  }
  std::stable_sort(row.all.begin(), row.all.end(),
                   [](const SimCost& a, const SimCost& b) { return a.seconds < b.seconds; });
  // Among configurations as fast as the best, the one that uses the fewest GPU resources.
  row.best = row.all.front();
  for (const SimCost& cost : row.all) {
    if (cost.seconds > row.all.front().seconds * kWorthIt) break;
    if (cost.config.channels < row.best.config.channels) row.best = cost;
  }
  if (row.chosen.seconds <= row.best.seconds * kWorthIt) row.best = row.chosen;
  return row;
}

Table Brief(const SimulatedCall& question, const std::vector<SimulatedRow>& rows) {
  Table table(
      {"size", "library's choice", "time", "busbw GB/s", "best", "time", "busbw GB/s", "gain"});
  using enum Table::Align;
  table.SetAlign({kRight, kLeft, kRight, kRight, kLeft, kRight, kRight, kRight});
  table.SetImportance({9, 7, 4, 1, 8, 5, 2, 9});
  for (const SimulatedRow& row : rows) {
    std::vector<std::string> cells{FormatBytes(row.bytes), ConfigName(question, row.chosen),
                                   TimeText(row.chosen.seconds),
                                   BandwidthText(question, row, row.chosen)};
    if (row.best.config == row.chosen.config) {
      cells.insert(cells.end(), {"the same", "", "", ""});
    } else {
      cells.insert(cells.end(), {ConfigName(question, row.best), TimeText(row.best.seconds),
                                 BandwidthText(question, row, row.best),
                                 Format("{:.2f}", row.chosen.seconds / row.best.seconds)});
    }
    table.Add(std::move(cells));
  }
  return table;
}

Table Whole(const SimulatedCall& question, const std::vector<SimulatedRow>& rows) {
  Table table({"size", "configuration", "time", "busbw GB/s", "gain", ""});
  using enum Table::Align;
  table.SetAlign({kRight, kLeft, kRight, kRight, kRight, kLeft});
  for (const SimulatedRow& row : rows) {
    for (const SimCost& cost : row.all) {
      table.Add({FormatBytes(row.bytes), ConfigName(question, cost), TimeText(cost.seconds),
                 BandwidthText(question, row, cost),
                 Format("{:.2f}", row.chosen.seconds / cost.seconds),
                 cost.config == row.chosen.config ? "library's choice" : ""});
    }
  }
  return table;
}

// More digits would suggest a precision that a simulation does not have.
double Rounded(double value, double steps) { return std::round(value * steps) / steps; }

ordered_json CostJson(const SimulatedCall& question, const SimulatedRow& row, const SimCost& cost) {
  const Library library = question.cluster.library;
  return {{"configuration", ConfigName(question, cost)},
          {"algorithm", AlgorithmName(library, question.collective, cost.config.algorithm)},
          {"protocol", ProtocolName(library, cost.config.protocol)},
          {"channels", cost.config.channels},
          {"seconds", Rounded(cost.seconds, 1e12)},
          {"busbw", Rounded(comm::sim::BusBandwidth(question.collective, question.layout.ranks,
                                                    row.bytes, cost.seconds),
                            1)}};
}

void PrintJson(const SimulatedCall& question, const std::vector<SimulatedRow>& rows, bool all) {
  ordered_json list = ordered_json::array();
  for (const SimulatedRow& row : rows) {
    ordered_json item{{"bytes", row.bytes},
                      {"library", CostJson(question, row, row.chosen)},
                      {"best", CostJson(question, row, row.best)},
                      {"gain", Rounded(row.chosen.seconds / row.best.seconds, 1e4)}};
    for (const SimCost& cost : row.all) {
      if (all) item["all"].push_back(CostJson(question, row, cost));
    }
    list.push_back(std::move(item));
  }
  Print({{"simulated", true},
         {"cluster", question.cluster.name},
         {"title", question.cluster.title},
         {"library", LibraryName(question.cluster.library)},
         {"collective", CollectiveName(question.collective)},
         {"ranks", question.layout.ranks},
         {"nodes", question.layout.nodes},
         {"sizes", list}});
}

Result<int> RunSimulate(const SimulateOptions& options) {
  if (options.cluster.empty()) {
    return List(options.json);
  }
  if (options.show) return Show(options.cluster);
  ASSIGN_OR_RETURN(const SimulatedCall understood, Understand(options));
  const SimulatedCall& question = understood;
  std::vector<SimulatedRow> rows;
  for (const uint64_t bytes : question.sizes) {
    ASSIGN_OR_RETURN(SimulatedRow row, Answer(question, bytes));
    rows.push_back(std::move(row));
  }
  if (options.json) {
    PrintJson(question, rows, options.all);
    return kExitFine;
  }
  const Table table = options.all ? Whole(question, rows) : Brief(question, rows);
  PrintOut("all figures are simulated, without noise; nothing was measured\n");
  PrintOut("cluster  {}: {}\n", question.cluster.name, question.cluster.title);
  PrintOut("call     {}, {} on {}, {}\n\n{}", std::string(CollectiveName(question.collective)),
           Count(static_cast<size_t>(question.layout.ranks), "rank"),
           Count(static_cast<size_t>(question.layout.nodes), "node"),
           std::string(LibraryTitle(question.cluster.library)), table.Text());
  return kExitFine;
}

}  // namespace

void AddSimulate(CommandLine* parent, CommandAction* run) {
  auto options = std::make_shared<SimulateOptions>();
  CommandLine* command = parent->AddCommand(
      "simulate", "Estimate the cost of collectives on a simulated cluster, and the best choice");
  command->Describe(
      "Without a cluster, lists the available ones. docs/commands/simulate.md describes the "
      "model.");
  command
      ->AddOption("CLUSTER", options->cluster,
                  "Name of a shipped cluster, or path of a .toml file that describes one")
      ->Check(ClusterName());
  command
      ->AddOption("--collective", options->collective,
                  "Collective to estimate: allreduce, allgather, reducescatter, broadcast, reduce "
                  "or alltoall")
      ->TypeName("NAME")
      ->Words({"allreduce", "allgather", "reducescatter", "broadcast", "reduce", "alltoall"})
      ->Check(ReadBy(ParseSimulated))
      ->Default("allreduce");
  command
      ->AddOption("--sizes", options->sizes,
                  std::string("Message sizes: ") + kSizesText +
                      "; for allgather, reducescatter and alltoall the total of all ranks")
      ->TypeName("SIZES")
      ->Check(ReadBy(ParseSizes))
      ->Default("1K:1G:x4");
  command->AddOption("--ranks", options->ranks, "Number of ranks, filled node by node")
      ->Check(Range(1, comm::sim::kMostRanks))
      ->Default("all GPUs");
  command->AddFlag("--all", options->all, "Show every configuration, fastest first");
  command->AddFlag("--show", options->show, "Print the description of the cluster and exit");
  command->AddJson(options->json);
  command->AddFormat();
  command->Example("diapason simulate", "List the available clusters");
  command->Example("diapason simulate h100x8 --sizes 1M --all",
                   "Show every configuration at one size, fastest first");
  command->SeeAlso({"bench", "sweep"});
  command->Callback([options, run] {
    if (options->show && options->cluster.empty()) {
      throw UsageError{"--show", "needs the name of a cluster"};
    }
    *run = [options] { return RunSimulate(*options); };
  });
}

}  // namespace diapason::cli
