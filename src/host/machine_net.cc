#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "host/machine_parts.h"
#include "host/paths.h"

namespace diapason::host {
namespace {

constexpr size_t kMostPorts = 256;
constexpr size_t kMostInterfaces = 1024;
constexpr int kMostGids = 256;
// Tables have 256 entries of which a handful are set.
constexpr int kEmptyGidsEnd = 16;

int NodeOf(const RootFs& tree, const std::string& device) {
  const auto node = tree.ReadNumber(device + "/numa_node");
  return node && *node >= 0 && *node < 65536 ? static_cast<int>(*node) : -1;
}

uint64_t CounterOf(const RootFs& tree, const std::string& path) {
  const auto value = tree.ReadNumber(path);
  return value && *value > 0 ? static_cast<uint64_t>(*value) : 0;
}

// The name of the PCI device behind a link such as .../0000:81:00.0.
std::string PciOf(const RootFs& tree, const std::string& device) {
  const std::string real = RealPath(tree, device);
  const std::string name = real.substr(real.rfind('/') + 1);
  return std::count(name.begin(), name.end(), ':') == 2 ? name : "";
}

// "::ffff:10.0.0.1" of "0000:0000:0000:0000:0000:ffff:0a00:0001"; "" if it is not an IPv4 address.
std::string MappedIpv4(const std::string& gid) {
  constexpr std::string_view kMapped = "0000:0000:0000:0000:0000:ffff:";
  if (!gid.starts_with(kMapped) || gid.size() != kMapped.size() + 9) return "";
  const auto byte = [&](size_t at) {
    return std::strtoul(gid.substr(kMapped.size() + at, 2).c_str(), nullptr, 16);
  };
  return Format("::ffff:{}.{}.{}.{}", byte(0), byte(2), byte(5), byte(7));
}

bool IsEmptyGid(const std::string& gid) {
  return gid.find_first_not_of("0:") == std::string::npos ||
         gid == "fe80:0000:0000:0000:0000:0000:0000:0000";
}

void ReadGids(const RootFs& tree, const std::string& folder, RdmaPort* port) {
  int empty = 0;
  for (int index = 0; index < kMostGids && empty < kEmptyGidsEnd; ++index) {
    const auto gid = tree.Read(Format("{}/gids/{}", folder, index), 256);
    if (!gid) return;
    if (IsEmptyGid(*gid)) {
      ++empty;
      continue;
    }
    empty = 0;
    const std::string type =
        tree.Read(Format("{}/gid_attrs/types/{}", folder, index), 256).value_or("");
    const std::string ipv4 = MappedIpv4(*gid);
    port->gids.push_back(
        Format("{}: {}{}{}", index, type, type.empty() ? "" : " ", (ipv4.empty() ? *gid : ipv4)));
    if (type == "RoCE v2" && !ipv4.empty() && port->rocev2_ipv4_gid < 0) {
      port->rocev2_ipv4_gid = index;
    }
  }
}

RdmaPort ReadPort(const RootFs& tree, const std::string& device, int number) {
  RdmaPort port;
  port.device = device;
  port.port = number;
  const std::string base = "/sys/class/infiniband/" + device;
  const std::string folder = Format("{}/ports/{}", base, number);
  const std::string state = tree.Read(folder + "/state").value_or("");
  port.state = state.substr(state.find(' ') == std::string::npos ? 0 : state.find(' ') + 1);
  port.link_layer = tree.Read(folder + "/link_layer").value_or("");
  const double rate = std::strtod(tree.Read(folder + "/rate").value_or("").c_str(), nullptr);
  port.gbits = std::isfinite(rate) && rate > 0 ? rate : 0;
  const std::vector<std::string> nets = tree.List(base + "/device/net");
  if (!nets.empty()) port.interface = nets.front();
  port.numa_node = NodeOf(tree, base + "/device");
  port.pci = PciOf(tree, base + "/device");
  port.link_downed = CounterOf(tree, folder + "/counters/link_downed");
  port.symbol_errors = CounterOf(tree, folder + "/counters/symbol_error");
  ReadGids(tree, folder, &port);
  return port;
}

NetInterface ReadInterface(const RootFs& tree, const std::string& name) {
  NetInterface interface;
  interface.name = name;
  const std::string folder = "/sys/class/net/" + name;
  const std::string state = tree.Read(folder + "/operstate").value_or("");
  // Tunnels and the like report no state; their carrier flag does.
  interface.up = state == "up" || (state != "down" && tree.ReadNumber(folder + "/carrier") == 1);
  const auto speed = tree.ReadNumber(folder + "/speed");
  if (speed && *speed > 0 && *speed < 100'000'000) {
    interface.gbits = static_cast<double>(*speed) * 1e-3;
  }
  const auto mtu = tree.ReadNumber(folder + "/mtu");
  interface.mtu = mtu && *mtu > 0 && *mtu < (1 << 30) ? static_cast<int>(*mtu) : 0;
  interface.virtual_one = !tree.Exists(folder + "/device");
  interface.numa_node = NodeOf(tree, folder + "/device");
  return interface;
}

}  // namespace

void LookAtNetworks(const RootFs& tree, Machine* machine) {
  for (const std::string& device : tree.List("/sys/class/infiniband")) {
    for (const std::string& name : tree.List("/sys/class/infiniband/" + device + "/ports")) {
      uint64_t number = 0;
      if (machine->rdma.size() >= kMostPorts || !ParseUnsigned(name, &number) || number > 255) {
        continue;
      }
      machine->rdma.push_back(ReadPort(tree, device, static_cast<int>(number)));
    }
  }
  for (const std::string& name : tree.List("/sys/class/net")) {
    if (machine->interfaces.size() >= kMostInterfaces) break;
    // "bonding_masters" is a file among the folders.
    if (!tree.IsFolder("/sys/class/net/" + name)) continue;
    machine->interfaces.push_back(ReadInterface(tree, name));
  }
}

}  // namespace diapason::host
