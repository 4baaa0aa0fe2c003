#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "doctor/checks.h"

namespace diapason::doctor {
namespace {

constexpr uint64_t kManyDrops = 10;
constexpr int kJumbo = 9000;

std::string Of(const host::RdmaPort& port) {
  return Format("/sys/class/infiniband/{}/ports/{}", port.device, port.port);
}

void CheckPorts(const CheckInputs& facts, std::vector<Finding>* findings) {
  std::vector<std::string> down;
  std::map<double, std::vector<std::string>> rates;
  for (const host::RdmaPort& port : facts.machine.rdma) {
    const std::string name = Format("{} port {}", port.device, port.port);
    if (port.state != "ACTIVE") {
      down.push_back(Of(port) + "/state: " + port.state);
      continue;
    }
    rates[port.gbits].push_back(name);
    if (port.symbol_errors > 0 || port.link_downed >= kManyDrops) {
      AddFinding(findings, "rdma.errors", Severity::kWarning,
                 name + " has had errors: look at its cable and the switch's port",
                 {Format("{}/counters: symbol_error {}, link_downed {}", Of(port),
                         port.symbol_errors, port.link_downed)},
                 "clear the counters, and see whether they grow again");
    }
  }
  if (!down.empty()) {
    AddFinding(findings, "rdma.down", Severity::kWarning,
               Format("{} of RDMA adapters {} not active", Count(down.size(), "port"),
                      down.size() == 1 ? "is" : "are"),
               down, "plug them in, start the subnet manager, or exclude them with NCCL_IB_HCA");
  }
  if (rates.empty()) return;
  std::vector<std::string> evidence;
  size_t active = 0;
  for (const auto& [rate, names] : rates) {
    evidence.push_back(Format("{:g} Gb/s: {}", rate, Join(names, ", ")));
    active += names.size();
  }
  if (rates.size() > 1) {
    AddFinding(findings, "rdma.rates", Severity::kNote,
               "active RDMA ports have different rates: NCCL may put fast and slow ones together",
               evidence, "name those that are for collectives in NCCL_IB_HCA");
  } else {
    AddFinding(findings, "rdma.active", Severity::kFine,
               Format("{} active at {:g} Gb/s", Count(active, "RDMA port"), rates.begin()->first),
               evidence);
  }
}

void CheckRoce(const CheckInputs& facts, std::vector<Finding>* findings) {
  std::set<int> indexes;
  std::vector<std::string> without;
  for (const host::RdmaPort& port : facts.machine.rdma) {
    if (port.link_layer != "Ethernet" || port.state != "ACTIVE") continue;
    if (port.rocev2_ipv4_gid >= 0) {
      indexes.insert(port.rocev2_ipv4_gid);
    } else {
      without.push_back(port.device + (port.interface.empty() ? "" : " (" + port.interface + ")") +
                        ": " + (port.gids.empty() ? "no address" : Join(port.gids, ", ")));
    }
  }
  if (!without.empty()) {
    AddFinding(findings, "rdma.gid", Severity::kWarning,
               Format("{} {} no RoCE v2 address over IPv4: NCCL uses another, which may not be "
                      "routed",
                      Count(without.size(), "adapter"), without.size() == 1 ? "has" : "have"),
               without, "give their interfaces IPv4 addresses");
  }
  const std::string chosen = facts.Variable("NCCL_IB_GID_INDEX");
  uint64_t number = 0;
  const bool numeric = ParseUnsigned(chosen, &number);
  if (numeric && !indexes.empty() && indexes.count(static_cast<int>(number)) == 0) {
    AddFinding(
        findings, "rdma.gid-index", Severity::kWarning,
        "NCCL_IB_GID_INDEX=" + chosen + " is not where RoCE v2 over IPv4 is here",
        {"gid_attrs: RoCE v2 over IPv4 at index " + CpuListText({indexes.begin(), indexes.end()})},
        "leave it unset: since 2.21 the library finds it");
  } else if (indexes.size() > 1) {
    AddFinding(findings, "rdma.gid-index", Severity::kNote,
               "the index of RoCE v2 differs between adapters: no one NCCL_IB_GID_INDEX fits all",
               {"indexes " + CpuListText({indexes.begin(), indexes.end()})},
               "leave it unset: since 2.21 the library finds it");
  } else if (indexes.size() == 1) {
    AddFinding(findings, "rdma.gid-index", Severity::kFine,
               Format("RoCE v2 over IPv4 has GID index {} on every adapter", *indexes.begin()));
  }
}

}  // namespace

void CheckRdma(const CheckInputs& facts, std::vector<Finding>* findings) {
  if (facts.machine.rdma.empty()) return;
  CheckPorts(facts, findings);
  CheckRoce(facts, findings);
  if (!facts.system.rdma_files) {
    AddFinding(findings, "rdma.no-device-files", Severity::kWarning,
               "there are RDMA adapters, but no program here can open them: NCCL falls back to TCP",
               {"/dev/infiniband: not there"},
               facts.machine.container.empty()
                   ? "modprobe ib_uverbs"
                   : "start the container with --device=/dev/infiniband and unlimited memlock");
  }
}

void CheckInterfaces(const CheckInputs& facts, std::vector<Finding>* findings) {
  std::vector<const host::NetInterface*> real;
  std::vector<std::string> virtual_ones;
  for (const host::NetInterface& interface : facts.machine.interfaces) {
    if (!interface.up || interface.name == "lo") continue;
    if (interface.virtual_one) {
      virtual_ones.push_back(interface.name);
    } else {
      real.push_back(&interface);
    }
  }
  if (real.empty()) {
    AddFinding(
        findings, "net.none",
        facts.machine.gpus.empty() || !virtual_ones.empty() ? Severity::kNote : Severity::kWarning,
        virtual_ones.empty() ? "no network interface is up: one host only"
                             : "only virtual network interfaces are up",
        {virtual_ones.empty() ? "/sys/class/net: none up but lo"
                              : "/sys/class/net: " + Join(virtual_ones, ", ")},
        virtual_ones.empty() ? "" : "for jobs on several hosts name one in NCCL_SOCKET_IFNAME");
    return;
  }
  std::vector<std::string> evidence;
  double fastest = 0;
  for (const host::NetInterface* interface : real) {
    fastest = std::max(fastest, interface->gbits);
    evidence.push_back(
        interface->gbits > 0
            ? Format("{}: {:g} Gb/s, MTU {}", interface->name, interface->gbits, interface->mtu)
            : Format("{}: speed not told, MTU {}", interface->name, interface->mtu));
  }
  const bool by_tcp = facts.machine.rdma.empty() || !facts.system.rdma_files;
  if (by_tcp && fastest > 0 && fastest < 25 && facts.machine.gpus.size() > 1) {
    AddFinding(findings, "net.slow", Severity::kNote,
               Format("collectives between hosts would go over {:g} Gb/s", fastest), evidence);
  } else {
    AddFinding(findings, "net.present", Severity::kFine,
               Count(real.size(), "network interface") + " up", evidence);
  }
  if (real.size() > 1 && facts.Variable("NCCL_SOCKET_IFNAME").empty() && by_tcp &&
      !facts.machine.gpus.empty()) {
    AddFinding(findings, "net.several", Severity::kNote,
               "several network interfaces are up: the library takes those it finds first",
               evidence, "name the one for collectives in NCCL_SOCKET_IFNAME");
  }
  std::vector<std::string> small;
  for (const host::NetInterface* interface : real) {
    if (by_tcp && interface->gbits >= 25 && interface->mtu < kJumbo && interface->mtu > 0) {
      small.push_back(Format("/sys/class/net/{}/mtu: {}", interface->name, interface->mtu));
    }
  }
  if (!small.empty() && !facts.machine.gpus.empty()) {
    AddFinding(findings, "net.mtu", Severity::kNote,
               "a fast interface has a small MTU: TCP costs more CPU time", small,
               "set 9000 where the whole network allows it");
  }
}

}  // namespace diapason::doctor
