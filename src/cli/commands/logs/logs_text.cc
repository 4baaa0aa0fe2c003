#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/printable.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/logs/logs_report.h"
#include "cli/commands/logs/logs_tables.h"
#include "cli/framework/findings.h"
#include "logs/diagnose.h"
#include "report/table.h"

namespace diapason::cli {
namespace {

using logs::CommRank;
using logs::HostLink;
using logs::kNoName;
using logs::LogFacts;
using logs::LoggedComm;
using logs::LoggedProcess;
using logs::RanksText;
using logs::Topology;
using logs::Variable;
using report::Table;

constexpr auto kLeft = Table::Align::kLeft;
constexpr auto kRight = Table::Align::kRight;

std::string Read(const LogFacts& facts) {
  std::map<std::string, size_t> kinds;
  for (const auto& file : facts.files) ++kinds[file.kind];
  std::vector<std::string> parts;
  for (const auto& [kind, count] : kinds) parts.push_back(Count(count, kind + " file"));
  if (parts.empty()) return "Read\n  no files\n";
  std::string text = "Read\n  " + Join(parts, ", ") + ", " + AboutBytes(facts.bytes);
  // If processes interrupt each other's lines, there are more messages than lines.
  if (facts.library_lines > 0) {
    text += ", " + Count(facts.library_lines, "message") + " of NCCL or RCCL in " +
            Count(facts.lines, "line");
  } else if (facts.lines > 0) {
    text += ", " + Count(facts.lines, "line");
  }
  text += "\n";
  if (facts.files_left_out > 0) {
    text += "  left out: " + Count(facts.files_left_out, "file") + "\n";
  }
  if (facts.damaged > 0 || facts.long_lines > 0) {
    text += Format("  {} lines were interrupted by others, {} were longer than 64 KiB\n",
                   facts.damaged, facts.long_lines);
  }
  if (facts.processes_left_out > 0 || facts.members_left_out > 0 || facts.links_left_out > 0) {
    text += Format(
        "  limits reached: only the first {} processes, {} ranks and {} connections are "
        "analysed\n",
        facts.processes.size(), facts.members.size(), facts.links.size());
  }
  if (!facts.launchers.empty()) text += "  started by " + Join(facts.launchers, ", ") + "\n";
  if (!facts.first_time.empty()) {
    text += "  from " + facts.first_time + " to " + facts.last_time + "\n";
  }
  return text;
}

std::string Libraries(const LogFacts& facts) {
  std::string text;
  std::vector<size_t> processes(facts.libraries.size());
  for (const LoggedProcess& process : facts.processes) {
    if (process.library != kNoName) ++processes[process.library];
  }
  for (uint32_t i = 0; i < facts.libraries.size() && i < kMostRows; ++i) {
    text += "  " + facts.libraries[i];
    if (processes[i] > 0) text += ", reported by " + logs::ProcessCount(processes[i]);
    text += "\n";
  }
  std::vector<std::string> drivers;
  for (uint32_t i = 0; i < facts.drivers.size() && i < kMostRows; ++i) {
    drivers.push_back(facts.drivers[i]);
  }
  if (!drivers.empty()) text += "  " + Join(drivers, ", ") + "\n";
  std::vector<std::string> more;
  for (uint32_t i = 0; i < facts.architectures.size() && i < 8; ++i) {
    more.push_back(facts.architectures[i]);
  }
  if (!more.empty()) text += "  GPUs: " + Join(more, ", ") + "\n";
  if (facts.hdp.count + facts.hdp_missing.count > 0) {
    text += "  HDP: " + Count(facts.hdp.count, "connection") + " with a register to flush, " +
            Format("{} without\n", facts.hdp_missing.count);
  }
  for (uint32_t i = 0; i < facts.plugins.size() && i < kMostRows; ++i) {
    text += "  plugin " + facts.plugins[i] + "\n";
  }
  more.clear();
  for (uint32_t i = 0; i < facts.networks.size() && i < 8; ++i) more.push_back(facts.networks[i]);
  if (!more.empty()) text += "  network: " + Join(more, ", ") + "\n";
  return text.empty() ? "" : "Libraries\n" + text;
}

// The GPUs of some members by bus number, if all are known.
std::string Gpus(const LogFacts& facts, const std::vector<uint32_t>& members) {
  std::vector<std::string> names;
  for (const uint32_t index : members) {
    if (names.size() == 8) {
      names.emplace_back("...");
      break;
    }
    const CommRank& member = facts.members[index];
    names.push_back(member.bus_id == 0 ? "?" : Format("{:x}", member.bus_id));
  }
  return Join(names, " ");
}

std::string Ranks(const LogFacts& facts) {
  std::string text;
  size_t shown = 0;
  for (const LoggedComm& communicator : facts.communicators) {
    if (communicator.members.empty()) continue;
    if (++shown > 8) continue;
    text += communicator.id == 0
                ? Format("  a communicator of {} ranks", communicator.ranks)
                : Format("  communicator 0x{:x}: {} ranks", communicator.id, communicator.ranks);
    if (communicator.nodes > 0) {
      text += " on " + Count(static_cast<size_t>(communicator.nodes), "node");
    }
    double slowest = -1;
    std::map<uint32_t, std::vector<uint32_t>> hosts;
    for (const uint32_t index : communicator.members) {
      const CommRank& member = facts.members[index];
      hosts[facts.processes[member.process].host].push_back(index);
      slowest = std::max(slowest, member.init_seconds);
    }
    if (slowest >= 0) text += Format(", initialised in {:.2f} s", slowest);
    text += "\n";
    Table table({"host", "ranks", "GPUs (bus)"});
    size_t rows = 0;
    for (const auto& [host, members] : hosts) {
      if (++rows > kMostRows) continue;
      std::vector<int64_t> ranks;
      for (const uint32_t index : members) ranks.push_back(facts.members[index].rank);
      table.Add({facts.hosts[host], RanksText(ranks), Gpus(facts, members)});
    }
    text += IndentedRows(IndentedRows(table.Text())) + MoreRows(rows, "host");
  }
  if (shown > 8) text += "  and " + Count(shown - 8, "more communicator") + "\n";
  return text.empty() ? "" : "Ranks\n" + text;
}

std::string Environment(const LogFacts& facts) {
  Table table({"variable", "value", "processes"});
  table.SetAlign({kLeft, kLeft, kRight});
  size_t rows = 0;
  std::vector<const Variable*> sorted;
  for (const Variable& variable : facts.variables) sorted.push_back(&variable);
  std::sort(sorted.begin(), sorted.end(),
            [](const Variable* a, const Variable* b) { return a->name < b->name; });
  for (const Variable* variable : sorted) {
    std::vector<size_t> counts(variable->values.size() + 1);
    for (const uint8_t value : variable->chosen) ++counts[value];
    for (uint32_t i = 0; i < variable->values.size(); ++i) {
      if (++rows > kMostRows) continue;
      table.Add({variable->name, variable->values[i].substr(0, 60), std::to_string(counts[i + 1])});
    }
  }
  if (rows == 0) return "";
  return "Environment, as reported by the library\n" + IndentedRows(table.Text()) +
         MoreRows(rows, "value");
}

std::string Connections(const LogFacts& facts) {
  std::string text;
  const std::vector<HostLink> links = logs::HostLinks(facts);
  if (!links.empty()) {
    Table table({"from", "to", "by", "pairs", "channels"});
    table.SetAlign({kLeft, kLeft, kLeft, kRight, kRight});
    size_t rows = 0;
    for (const HostLink& link : links) {
      if (++rows > kMostRows) continue;
      table.Add({link.from, link.inside ? "itself" : link.to, link.kind, std::to_string(link.pairs),
                 std::to_string(link.channels)});
    }
    text += IndentedRows(table.Text()) + MoreRows(rows, "line");
  }
  size_t shown = 0;
  std::set<std::string> said;
  for (const LoggedComm& communicator : facts.communicators) {
    std::vector<std::string> parts;
    if (communicator.rings > 0) {
      parts.push_back(Count(static_cast<size_t>(communicator.rings), "ring") + " (" +
                      communicator.first_ring + ")");
    }
    if (!communicator.first_tree.empty()) {
      parts.push_back("trees (" + communicator.first_tree + ")");
    }
    if (communicator.coll_channels >= 0) {
      parts.push_back(Format("{} channels for collectives", communicator.coll_channels));
    }
    if (communicator.nvls_channels > 0) {
      parts.push_back(Format("{} for NVLS", communicator.nvls_channels));
    }
    if (communicator.p2p_channels >= 0) {
      parts.push_back(Format("{} for point to point", communicator.p2p_channels));
    }
    const std::string line = "  " + Join(parts, ", ") + "\n";
    if (parts.empty() || !said.insert(line).second || ++shown > 8) continue;
    text += line;
  }
  if (facts.nvls_on.count > 0) text += "  NVLS: available\n";
  if (facts.nvls_off.count > 0 && facts.nvls_on.count == 0) text += "  NVLS: not available\n";
  if (facts.network.ib_devices > 0) {
    std::vector<std::string> devices;
    for (uint32_t i = 0; i < facts.network.ib.size() && i < 8; ++i) {
      devices.push_back(facts.network.ib[i]);
    }
    text += "  RDMA devices: " + Join(devices, ", ") +
            (facts.network.ib.size() > 8 ? ", ..." : "") + "\n";
  }
  std::vector<std::string> interfaces;
  for (uint32_t i = 0; i < facts.network.sockets.size() && i < 8; ++i) {
    interfaces.push_back(facts.network.sockets[i]);
  }
  if (!interfaces.empty()) text += "  socket interfaces: " + Join(interfaces, ", ") + "\n";
  return text.empty() ? "" : "Connections\n" + text;
}

std::string TopologyText(const LogFacts& facts) {
  std::string text;
  size_t rows = 0;
  for (const Topology& topology : facts.topologies.files) {
    if (++rows > kMostRows) continue;
    text += "  " + facts.files[topology.file].name + ": ";
    if (topology.graph) {
      text += Count(topology.graphs.size(), "graph") + "\n";
      for (const std::string& graph : topology.graphs) text += "    " + graph + "\n";
      continue;
    }
    text += Format("{}, {} ({}), {}", Count(static_cast<size_t>(topology.cpus), "CPU"),
                   Count(static_cast<size_t>(topology.gpus), "GPU"), topology.architecture,
                   Count(static_cast<size_t>(topology.nics), "network adapter"));
    if (topology.nics_without_gdr > 0) {
      text += Format(" ({} without GPU Direct RDMA)", topology.nics_without_gdr);
    }
    if (topology.links > 0) {
      text += Format(", {} {} links", topology.links, topology.link_name);
    }
    text += "\n";
  }
  return text.empty() ? "" : "Topology files\n" + text + MoreRows(rows, "file");
}

std::string Judgement(const std::vector<Finding>& findings) {
  return "Findings: " + FindingsSummary(findings) + "\n" + FindingsText(findings, false);
}

}  // namespace

const std::vector<std::string>& LogSections() {
  static const std::vector<std::string> sections = {
      "verdict",     "findings", "read",    "libraries",  "ranks",  "environment",
      "connections", "choices",  "results", "operations", "flight", "topology"};
  return sections;
}

std::string LogSectionText(const std::string& section, const LogFacts& facts,
                           const logs::Diagnosis& diagnosis) {
  static const std::map<std::string, std::function<std::string(const LogFacts&)>> kParts = {
      {"read", Read},
      {"libraries", Libraries},
      {"ranks", Ranks},
      {"choices", LogChoices},
      {"environment", Environment},
      {"connections", Connections},
      {"results", LogResults},
      {"operations", LogOperations},
      {"flight", LogFlights},
      {"topology", TopologyText}};
  if (section == "verdict") return Printable(diagnosis.verdict.text) + "\n";
  if (section == "findings") return Judgement(diagnosis.findings);
  // Text from logs and file names may also contain escapes between the tables.
  return PrintableLines(kParts.at(section)(facts));
}

}  // namespace diapason::cli
