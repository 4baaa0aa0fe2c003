// Connections between ranks, and their cost.
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/text.h"
#include "logs/diagnose.h"

namespace diapason::logs {
namespace {

// "NET/IB/3/GDRDMA/Shared" -> "NET/IB", "SHM/direct/direct" -> "SHM".
std::string KindOf(const std::string& way, bool* gdr) {
  *gdr = way.find("GDRDMA") != std::string::npos;
  if (way.starts_with("SHM")) return "SHM";
  if (way.starts_with("P2P/indirect")) return "P2P/indirect";
  if (way.starts_with("P2P/")) {
    const size_t end = way.find('/', 4);
    return way.substr(0, end);
  }
  if (way.starts_with("NET/") || way.starts_with("COLLNET/")) {
    const size_t first = way.find('/');
    const size_t end = way.find_first_of("/(", first + 1);
    return way.substr(0, end) + (*gdr ? " with GPU Direct RDMA" : "");
  }
  return way;
}

// "NET/IB/3/GDRDMA" -> "3"; "" where there is none.
std::string DeviceOf(const std::string& way) {
  if (!way.starts_with("NET/")) return "";
  const size_t name = way.find('/', 4);
  if (name == std::string::npos) return "";
  const size_t end = way.find_first_of("/(", name + 1);
  return way.substr(name + 1, end == std::string::npos ? end : end - name - 1);
}

bool Virtual(const std::string& interface) {
  for (const std::string_view prefix :
       {"docker", "br-", "veth", "virbr", "lo:", "cni", "flannel", "cali", "tun", "lxc", "vmnet"}) {
    if (interface.starts_with(prefix)) return true;
  }
  return interface.find(":172.17.") != std::string::npos;  // docker's own bridge
}

// The log's evidence for variables that switch a feature off.
std::string Setting(const LogFacts& facts, std::string_view name, std::string* where) {
  for (const Variable& variable : facts.variables) {
    if (variable.name != name || variable.values.size() == 0) continue;
    *where = facts.Where(variable.places[0]);
    return variable.values[0];
  }
  return "";
}

void Inside(const LogFacts& facts, const std::vector<HostLink>& links,
            std::vector<Finding>* findings) {
  const HostLink* slow = nullptr;
  uint64_t slow_pairs = 0;
  uint64_t direct_pairs = 0;
  std::set<std::string> hosts;
  for (const HostLink& link : links) {
    if (!link.inside) continue;
    if (link.kind.starts_with("P2P/") && link.kind != "P2P/indirect") {
      direct_pairs += link.pairs;
      continue;
    }
    slow_pairs += link.pairs;
    hosts.insert(link.from);
    if (slow == nullptr) slow = &link;
  }
  if (slow == nullptr) return;
  const bool nvlink = facts.nvlink.count > 0 || facts.nvls_on.count > 0 ||
                      std::any_of(facts.topologies.files.begin(), facts.topologies.files.end(),
                                  [](const Topology& file) { return file.links > 0; });
  Finding finding;
  finding.id = nvlink ? "link.nvlink-unused" : "link.no-p2p";
  finding.severity = Severity::kWarning;
  finding.title =
      Format("{} of GPUs inside {} talk by {} instead of directly{}", Count(slow_pairs, "pair"),
             hosts.size() == 1 ? ("host " + *hosts.begin()) : Format("{} hosts", hosts.size()),
             slow->kind, nvlink ? ", although there is NVLink or XGMI between GPUs" : "");
  finding.evidence.push_back(facts.Where(slow->first));
  if (facts.nvlink.count > 0) finding.evidence.push_back(facts.Where(facts.nvlink.first));
  std::string where;
  const std::string disabled = Setting(facts, "NCCL_P2P_DISABLE", &where);
  if (!disabled.empty() && disabled != "0") {
    finding.evidence.push_back(where);
    finding.action = "take NCCL_P2P_DISABLE out";
  } else if (!Setting(facts, "NCCL_P2P_LEVEL", &where).empty()) {
    finding.evidence.push_back(where);
    finding.action = "take NCCL_P2P_LEVEL out, or raise it";
  } else if (!Setting(facts, "NCCL_HOSTID", &where).empty()) {
    finding.evidence.push_back(where);
    finding.action =
        "take NCCL_HOSTID out: with it the library takes processes of one host for different hosts";
  } else {
    finding.action =
        "ask nvidia-smi topo -p2p r (or rocm-smi --showtopo): if it says no, ACS on the PCIe "
        "switches, the IOMMU, or containers that do not share IPC and GPUs are in the way";
  }
  if (direct_pairs > 0) {
    finding.title += Format(" ({} do)", Count(direct_pairs, "pair"));
  }
  findings->push_back(std::move(finding));
}

// Hosts without GPU Direct RDMA, where others have it; false if there are none.
bool GdrOnSomeHosts(const LogFacts& facts, std::vector<Finding>* findings) {
  std::vector<std::string> without;
  const LogFacts::GdrUse* example = nullptr;
  bool with = false;
  for (const auto& [host, use] : facts.gdr_by_host) {
    if (use.direct > 0) {
      with = true;
    } else if (use.staged > 0) {
      without.push_back(facts.hosts[host]);
      if (example == nullptr) example = &use;
    }
  }
  if (!with || without.empty()) return false;
  const size_t more = without.size() > 4 ? without.size() - 4 : 0;
  without.resize(without.size() - more);
  findings->push_back(
      {"net.gdr-off",
       Severity::kWarning,
       Format("GPU Direct RDMA (GDR) is missing on {}{} only; the other hosts use it",
              Join(without, ", "), more > 0 ? Format(" and {} more", more) : ""),
       {facts.Where(example->first_staged)},
       "load nvidia_peermem (or a kernel, driver and adapter with DMA-BUF) there, as on the other "
       "hosts"});
  return true;
}

void Between(const LogFacts& facts, const std::vector<HostLink>& links,
             std::vector<Finding>* findings) {
  uint64_t direct = 0;
  uint64_t staged = 0;
  const HostLink* socket = nullptr;
  const HostLink* without = nullptr;
  for (const HostLink& link : links) {
    if (link.inside || !link.kind.starts_with("NET/")) continue;
    if (link.kind.starts_with("NET/Socket")) {
      if (socket == nullptr) socket = &link;
    } else if (link.gdr) {
      direct += link.channels;
    } else {
      staged += link.channels;
      if (without == nullptr) without = &link;
    }
  }
  std::string where;
  if (socket != nullptr) {
    const bool ib = facts.network.ib.size() > 0;
    Finding finding;
    finding.id = "net.sockets";
    finding.severity = Severity::kWarning;
    finding.title = ib ? "Hosts talk over TCP sockets although there are InfiniBand or RoCE devices"
                       : "Hosts talk over TCP sockets: much slower than RDMA, and the CPU copies "
                         "every byte";
    finding.evidence.push_back(facts.Where(socket->first) + ": " + socket->from + " -> " +
                               socket->to);
    if (ib) finding.evidence.push_back(facts.Where(facts.network.ib_place));
    const std::string off = Setting(facts, "NCCL_IB_DISABLE", &where);
    if (!off.empty() && off != "0") {
      finding.evidence.push_back(where);
      finding.action = "take NCCL_IB_DISABLE out";
    } else if (!Setting(facts, "NCCL_NET", &where).empty()) {
      finding.evidence.push_back(where);
      finding.action = "take NCCL_NET out";
    } else {
      finding.action = ib ? "look at NCCL_NET, and at lines 'Failed to initialize NET plugin'"
                          : "if the hosts have RDMA adapters: make /dev/infiniband and libibverbs "
                            "visible in the container; with AWS EFA install aws-ofi-nccl";
    }
    findings->push_back(std::move(finding));
    for (uint32_t i = 0; i < facts.network.sockets.size(); ++i) {
      if (!Virtual(facts.network.sockets[i])) continue;
      findings->push_back(
          {"net.virtual-interface",
           Severity::kWarning,
           Format("Data goes over a virtual interface: {}", facts.network.sockets[i]),
           {facts.Where(facts.network.socket_place)},
           "set NCCL_SOCKET_IFNAME to the real one, or exclude it: "
           "NCCL_SOCKET_IFNAME=^docker,lo,veth,br-"});
      break;
    }
  }
  if (!GdrOnSomeHosts(facts, findings) && staged > 0) {
    Finding finding;
    finding.id = "net.gdr-off";
    finding.severity = Severity::kWarning;
    const uint64_t all = direct + staged;
    finding.title =
        direct == 0 ? Format(
                          "GPU Direct RDMA is not used: all {} network channels go through host "
                          "memory",
                          staged)
                    : Format(
                          "GPU Direct RDMA is used by {} of {} network channels; the others go "
                          "through host memory",
                          direct, all);
    finding.evidence.push_back(facts.Where(without->first));
    if (facts.gdr_missing.count > 0) {
      finding.evidence.push_back(facts.Where(facts.gdr_missing.first));
      finding.action =
          "load nvidia_peermem (or a kernel, driver and adapter with DMA-BUF) on "
          "every host; with AMD GPUs the amdkfd peer memory interface";
    } else if (facts.gdr_off.count > 0) {
      finding.evidence.push_back(facts.Where(facts.gdr_off.first));
      finding.action =
          "adapter and GPU are too far apart for it: use the adapters below the same "
          "PCIe switch (NCCL_IB_HCA, one rail per GPU), or raise NCCL_NET_GDR_LEVEL "
          "and measure";
    } else {
      finding.action = "look at NCCL_NET_GDR_LEVEL and at nvidia_peermem";
    }
    findings->push_back(std::move(finding));
  }
}

// Fewer adapters in use than GPUs and adapters would allow.
void Rails(const LogFacts& facts, std::vector<Finding>* findings) {
  // If lines were lost, those of the other adapters may be among them.
  if (facts.network.ib_devices < 2 || facts.damaged > 0) return;
  std::map<uint32_t, std::set<std::string>> used;  // by host
  std::map<uint32_t, std::set<uint64_t>> gpus;
  std::unordered_map<uint64_t, uint32_t> host_of;
  for (const CommRank& member : facts.members) {
    const uint32_t host = facts.processes[member.process].host;
    host_of[static_cast<uint64_t>(member.communicator) << 32 ^ static_cast<uint32_t>(member.rank)] =
        host;
    if (member.bus_id != 0) gpus[host].insert(member.bus_id);
  }
  Spot first;
  for (const Link& link : facts.links) {
    const std::string device = DeviceOf(facts.ways[link.way]);
    if (device.empty() || link.sends == 0) continue;
    const auto host = host_of.find(static_cast<uint64_t>(link.communicator) << 32 ^
                                   static_cast<uint32_t>(link.from));
    if (host == host_of.end()) continue;
    used[host->second].insert(device);
    if (first.line == 0) first = link.first;
  }
  for (const auto& [host, devices] : used) {
    const size_t possible = std::min(gpus[host].size(), facts.network.ib_devices);
    if (possible < 2 || devices.size() >= possible) continue;
    findings->push_back(
        {"net.few-adapters",
         Severity::kWarning,
         Format("Host {} sends over {} of {} network adapters, with {} GPUs", facts.hosts[host],
                devices.size(), facts.network.ib_devices, gpus[host].size()),
         {facts.Where(first), facts.Where(facts.network.ib_place)},
         "look at NCCL_IB_HCA and NCCL_CROSS_NIC; with one adapter per GPU each should be used"});
    return;
  }
}

}  // namespace

std::vector<HostLink> HostLinks(const LogFacts& facts) {
  std::unordered_map<uint64_t, uint32_t> host_of;
  std::map<uint32_t, std::set<uint32_t>> hosts_in;  // by communicator
  for (const CommRank& member : facts.members) {
    const uint32_t host = facts.processes[member.process].host;
    hosts_in[member.communicator].insert(host);
    host_of[static_cast<uint64_t>(member.communicator) << 32 ^ static_cast<uint32_t>(member.rank)] =
        host;
  }
  const auto host = [&](uint32_t communicator, int32_t rank) {
    const auto found =
        host_of.find(static_cast<uint64_t>(communicator) << 32 ^ static_cast<uint32_t>(rank));
    if (found != host_of.end()) return facts.hosts[found->second];
    // Logs of one host only: missing ranks are on other hosts, if there are any.
    return std::string(facts.communicators[communicator].nodes == 1 ? "" : "other hosts");
  };
  std::map<std::tuple<std::string, std::string, std::string>, HostLink> links;
  for (const Link& link : facts.links) {
    HostLink made;
    made.from = host(link.communicator, link.from);
    made.to = host(link.communicator, link.to);
    made.kind = KindOf(facts.ways[link.way], &made.gdr);
    const bool local = made.kind.starts_with("P2P") || made.kind == "SHM";
    if (made.from.empty() || (local && made.from == "other hosts")) made.from = made.to;
    if (made.to.empty() || (local && made.to == "other hosts")) made.to = made.from;
    made.inside = made.from == made.to && made.from != "other hosts";
    const auto [entry, fresh] = links.emplace(std::tuple(made.from, made.to, made.kind), made);
    if (fresh) entry->second.first = link.first;
    entry->second.channels += std::max(link.sends, link.receives);
    ++entry->second.pairs;
  }
  std::vector<HostLink> result;
  result.reserve(links.size());
  for (auto& [key, link] : links) result.push_back(std::move(link));
  return result;
}

void DiagnoseLinks(const LogFacts& facts, std::vector<Finding>* findings) {
  const std::vector<HostLink> links = HostLinks(facts);
  Inside(facts, links, findings);
  Between(facts, links, findings);
  Rails(facts, findings);
  for (const Topology& topology : facts.topologies.files) {
    if (topology.linked_gpus > 0 && topology.bare_gpu.line != 0) {
      findings->push_back({"link.gpu-without-link",
                           Severity::kWarning,
                           Format("A GPU has no {} although {} others have", topology.link_name,
                                  topology.linked_gpus),
                           {facts.Where(topology.bare_gpu)},
                           "look at the link's state: nvidia-smi nvlink --status, or rocm-smi "
                           "--showtopo"});
    }
  }
}

}  // namespace diapason::logs
