// Jobs that stop without an error: what hints at the reason, as suspicions.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "logs/diagnose.h"

namespace diapason::logs {
namespace {

bool VirtualInterface(std::string_view interface) {
  for (const std::string_view prefix :
       {"docker", "br-", "veth", "virbr", "lo:", "cni", "flannel", "cali", "tun", "lxc", "vmnet"}) {
    if (interface.starts_with(prefix)) return true;
  }
  return interface.find(":172.17.") != std::string_view::npos;  // docker's own bridge
}

bool HasTrouble(const LogFacts& facts, std::string_view id) {
  const auto& known = messages::Catalogue::BuiltIn().messages();
  for (size_t i = 0; i < known.size(); ++i) {
    if (known[i].id == id && facts.troubles.kinds[i].count > 0) return true;
  }
  return false;
}

// Several hosts, and an interface that leads to none of the others.
void WrongInterface(const LogFacts& facts, bool stuck, std::vector<Finding>* findings) {
  std::set<uint32_t> hosts;
  for (const LoggedProcess& process : facts.processes) hosts.insert(process.host);
  const bool failed = HasTrouble(facts, "net.connect") || stuck || facts.retries.count > 0;
  if (!failed || hosts.size() < 2) return;
  for (uint32_t i = 0; i < facts.network.sockets.size(); ++i) {
    const std::string& interface = facts.network.sockets[i];
    const bool local = interface.find(":fe80") != std::string::npos;
    if (!VirtualInterface(interface) && !local) continue;
    findings->push_back(
        {"net.wrong-interface",
         Severity::kError,
         Format(
             "The wrong network interface was chosen: {} {}; hosts cannot reach each other by it",
             interface,
             local ? "has an IPv6 link-local address" : "is a bridge or virtual interface"),
         {facts.Where(facts.network.socket_place)},
         "set NCCL_SOCKET_IFNAME (and GLOO_SOCKET_IFNAME) to the interface that connects the "
         "hosts, "
         "or exclude it: NCCL_SOCKET_IFNAME=^docker,lo,veth,br-; NCCL_SOCKET_FAMILY=AF_INET for "
         "IPv4"});
    return;
  }
}

// Everything is set up and the first call does not end.
void FirstCall(const LogFacts& facts, std::vector<Finding>* findings) {
  std::string p2p;
  std::string shm;
  std::string gdr;
  for (const HostLink& link : HostLinks(facts)) {
    if (link.kind.starts_with("P2P/") && p2p.empty()) p2p = facts.Where(link.first);
    if (link.kind == "SHM" && shm.empty()) shm = facts.Where(link.first);
    if (link.gdr && gdr.empty()) gdr = facts.Where(link.first);
  }
  Finding finding;
  finding.id = "hang.suspect";
  finding.severity = Severity::kError;
  if (!p2p.empty() && facts.nvlink.count == 0 && facts.nvls_on.count == 0) {
    finding.title =
        "The job hung in its first collective after everything was set up: PCIe peer-to-peer (P2P) "
        "suspected, blocked by ACS or the IOMMU";
    finding.evidence.push_back(p2p);
    finding.action =
        "try NCCL_P2P_DISABLE=1; if it helps, switch ACS off on the PCIe switches and the IOMMU "
        "off "
        "(or iommu=pt), and run p2pBandwidthLatencyTest";
  } else if (!gdr.empty()) {
    finding.title =
        "The job hung in its first collective after everything was set up: GPUDirect RDMA "
        "suspected";
    finding.evidence.push_back(gdr);
    finding.action =
        "try NCCL_NET_GDR_LEVEL=LOC; if it helps, look at nvidia_peermem, ACS and the IOMMU; else "
        "at "
        "the network between the hosts (ib_write_bw)";
  } else if (!shm.empty()) {
    finding.title =
        "The job hung in its first collective after everything was set up: shared memory between "
        "the processes suspected";
    finding.evidence.push_back(shm);
    finding.action = "try NCCL_SHM_DISABLE=1; look at /dev/shm and the containers' IPC namespaces";
  } else {
    return;
  }
  findings->push_back(std::move(finding));
}

}  // namespace

void DiagnoseHang(const LogFacts& facts, std::vector<Finding>* findings) {
  const bool stuck_init = std::any_of(findings->begin(), findings->end(),
                                      [](const Finding& f) { return f.id == "hang.init"; });
  WrongInterface(facts, stuck_init, findings);
  const bool complete =
      !facts.members.empty() &&
      std::all_of(facts.members.begin(), facts.members.end(),
                  [](const CommRank& m) { return m.complete || m.used || m.ended; });
  const bool empty_table =
      !facts.perf.tests.empty() &&
      std::all_of(facts.perf.tests.begin(), facts.perf.tests.end(),
                  [](const PerfTest& test) { return test.rows == 0 && test.ends < test.starts; });
  const bool first_timed_out =
      !facts.watchdog.ranks.empty() &&
      std::all_of(facts.watchdog.ranks.begin(), facts.watchdog.ranks.end(),
                  [](const WatchdogRank& rank) { return rank.sequence == 1; });
  if (complete && (empty_table || first_timed_out)) FirstCall(facts, findings);
}

}  // namespace diapason::logs
