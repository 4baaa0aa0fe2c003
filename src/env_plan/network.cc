#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "domain/library_version.h"
#include "env_plan/plan.h"

namespace diapason::env_plan {
namespace {

constexpr double kSameSpeed = 0.99;
constexpr double kFastEthernet = 25;  // Gbit/s that one thread and one connection cannot saturate

bool IsActive(const host::RdmaPort& port) { return port.state.find("ACTIVE") != std::string::npos; }

std::vector<const host::RdmaPort*> ActivePorts(const host::Machine& machine) {
  std::vector<const host::RdmaPort*> ports;
  for (const host::RdmaPort& port : machine.rdma) {
    if (IsActive(port)) ports.push_back(&port);
  }
  return ports;
}

std::string PortName(const host::RdmaPort& port, bool with_number) {
  return with_number ? Format("{}:{}", port.device, port.port) : port.device;
}

std::string Names(const std::vector<const host::RdmaPort*>& ports, const std::string& separator) {
  // A device with several ports needs the port; other devices are given by name.
  std::map<std::string, int> count;
  for (const host::RdmaPort* port : ports) ++count[port->device];
  std::vector<std::string> names;
  names.reserve(ports.size());
  for (const host::RdmaPort* port : ports) {
    names.push_back(PortName(*port, port->port != 1 || count[port->device] > 1));
  }
  return Join(names, separator);
}

// The fastest ports of one kind: InfiniBand before Ethernet if both are equally fast.
struct Rails {
  std::vector<const host::RdmaPort*> used;
  std::vector<const host::RdmaPort*> others;
};
Rails FindRails(const std::vector<const host::RdmaPort*>& ports) {
  Rails rails;
  const host::RdmaPort* best = nullptr;
  for (const host::RdmaPort* port : ports) {
    const bool faster = best == nullptr || port->gbits > best->gbits ||
                        (port->gbits == best->gbits && best->link_layer != "InfiniBand" &&
                         port->link_layer == "InfiniBand");
    if (faster) best = port;
  }
  for (const host::RdmaPort* port : ports) {
    const bool same =
        port->link_layer == best->link_layer && port->gbits >= best->gbits * kSameSpeed;
    (same ? rails.used : rails.others).push_back(port);
  }
  return rails;
}

void Hcas(PlanBuilder* builder, const Rails& rails) {
  const host::RdmaPort& first = *rails.used.front();
  const std::string kind = Format("{:.0f} Gbit/s {}", first.gbits,
                                  first.link_layer == "Ethernet" ? "RoCE" : "InfiniBand");
  if (rails.used.size() < 2 && rails.others.empty()) return;
  const std::string ports = Count(rails.used.size(), "active port") + " of " + kind;
  if (rails.others.empty()) {
    builder->LeaveOut("NCCL_IB_HCA", "",
                      "automatic takes the same, " + ports + ": " + Names(rails.used, ", "), true);
  } else {
    builder->Set(
        "NCCL_IB_HCA", "=" + Names(rails.used, ","),
        ports + ", without " + Names(rails.others, ", ") +
            ", slower or of another kind; '=' takes names exactly, not as beginnings of longer "
            "ones",
        "every host of the job needs the same names; a port that is added later is not used");
  }
  if (rails.used.size() < 2) return;
  builder->Note("rails",
                "NCCL_CROSS_NIC stays at its default: 0 is for fabrics whose rails are separate "
                "(one switch per rail), 1 for those where every port reaches every other equally "
                "well; only the site knows");
}

// The library's automatic selection skips them silently.
void PortsThatAreDown(PlanBuilder* builder) {
  std::vector<const host::RdmaPort*> down;
  for (const host::RdmaPort& port : builder->machine().rdma) {
    if (!IsActive(port)) down.push_back(&port);
  }
  if (down.empty()) return;
  const bool one = down.size() == 1;
  builder->Note("ports", (one ? "port " : "ports ") + Names(down, ", ") +
                             (one ? " is down: the job would run without it; "
                                  : " are down: the job would run without them; ") +
                             "diapason doctor says more");
}

void RoceGid(PlanBuilder* builder, const std::vector<const host::RdmaPort*>& ports) {
  std::set<int> indexes;
  std::vector<std::string> found;
  const bool numbers = std::any_of(ports.begin(), ports.end(),
                                   [](const host::RdmaPort* port) { return port->port != 1; });
  for (const host::RdmaPort* port : ports) {
    if (port->link_layer != "Ethernet") continue;
    indexes.insert(port->rocev2_ipv4_gid);
    found.push_back(PortName(*port, numbers) + " " +
                    (port->rocev2_ipv4_gid < 0 ? "none" : Format("{}", port->rocev2_ipv4_gid)));
  }
  if (found.empty()) return;
  const bool none = indexes.size() == 1 && *indexes.begin() < 0;
  const std::string table = none ? "no port has a RoCE v2 address over IPv4"
                                 : "RoCE v2 over IPv4 has GID index " + Join(found, ", ");
  const bool automatic = builder->DefaultOf("NCCL_IB_GID_INDEX") == "-1";
  if (automatic) {
    builder->LeaveOut("NCCL_IB_GID_INDEX", "-1",
                      "the library finds the index by itself; for checking: " + table, true);
  } else if (indexes.size() == 1 && *indexes.begin() >= 0) {
    builder->Set("NCCL_IB_GID_INDEX", Format("{}", *indexes.begin()),
                 "this version does not look for RoCE v2 itself, and takes 0; " + table,
                 "every host of the job must have RoCE v2 at this index");
  } else if (none) {
    builder->Note("RoCE", table + ": give their interfaces addresses, or RoCE cannot be used");
  } else {
    builder->Note("RoCE",
                  "NCCL_IB_GID_INDEX has to be set for this version, but one number does not "
                  "do: " +
                      table +
                      "; give all ports the same index, or use 2.21 or later, "
                      "which looks for it");
  }
  builder->Note("traffic class",
                "NCCL_IB_TC belongs to the site: it must be the class for which the switches have "
                "flow control (PFC, ECN); ask the network administrator, and leave it alone "
                "otherwise");
}

// The interfaces for sockets: always for the bootstrap, for data if there is no RDMA.
void Interfaces(PlanBuilder* builder) {
  const host::NetInterface* best = nullptr;
  std::vector<std::string> virtual_ones;
  for (const host::NetInterface& interface : builder->machine().interfaces) {
    if (!interface.up || interface.name == "lo") continue;
    if (interface.virtual_one) {
      virtual_ones.push_back(interface.name);
    } else if (best == nullptr || interface.gbits > best->gbits) {
      best = &interface;
    }
  }
  if (virtual_ones.empty() || best == nullptr) return;
  const size_t shown = std::min<size_t>(virtual_ones.size(), 4);
  std::string list =
      Join({virtual_ones.begin(), virtual_ones.begin() + static_cast<ptrdiff_t>(shown)}, ", ");
  if (virtual_ones.size() > shown) list += Format(" and {} more", virtual_ones.size() - shown);
  builder->Set("NCCL_SOCKET_IFNAME", "=" + best->name,
               "there are virtual interfaces that reach no other host (" + list + ")",
               "every host of the job needs an interface of this name");
}

void Sockets(PlanBuilder* builder) {
  const host::Machine& machine = builder->machine();
  double fastest = 0;
  for (const host::NetInterface& interface : machine.interfaces) {
    if (interface.up && !interface.virtual_one) fastest = std::max(fastest, interface.gbits);
  }
  const bool known = machine.cloud == "aws" || machine.cloud == "gcp";
  if (known) {
    builder->LeaveOut("NCCL_SOCKET_NTHREADS", builder->DefaultOf("NCCL_SOCKET_NTHREADS"),
                      machine.cloud == "aws"
                          ? "on AWS the library takes 2 threads with 8 sockets each by itself"
                          : "on Google Cloud the library takes 4 threads with 1 socket each by "
                            "itself",
                      true);
    return;
  }
  if (builder->plan()->request.goal != PlanGoal::kThroughput) return;
  if (machine.cloud.empty() && fastest < kFastEthernet) return;
  const std::string reason =
      fastest > 0 ? Format("TCP only, over {:.0f} Gbit/s: one connection does not fill it", fastest)
                  : "TCP only: one connection seldom fills a cloud's network";
  builder->Set("NCCL_SOCKET_NTHREADS", "4", reason, "up to four more busy threads a connection");
  builder->Set("NCCL_NSOCKS_PERTHREAD", "4", reason, "threads times sockets may not exceed 64");
}

}  // namespace

void PlanForNetwork(PlanBuilder* builder) {
  if (builder->plan()->request.goal == PlanGoal::kDebug) return;
  const std::vector<const host::RdmaPort*> ports = ActivePorts(builder->machine());
  if (!ports.empty()) {
    const Rails rails = FindRails(ports);
    Hcas(builder, rails);
    PortsThatAreDown(builder);
    RoceGid(builder, rails.used);
    builder->plan()->docker_options.emplace_back("--device=/dev/infiniband");
    builder->plan()->docker_options.emplace_back("--ulimit memlock=-1");
    builder->plan()->docker_options.emplace_back("--cap-add=IPC_LOCK");
  } else {
    if (!builder->machine().rdma.empty()) {
      builder->Note("RDMA",
                    "there are RDMA devices, but no port is active: data goes over sockets");
    }
    Sockets(builder);
  }
  Interfaces(builder);
}

}  // namespace diapason::env_plan
