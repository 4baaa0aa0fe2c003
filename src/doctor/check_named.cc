#include <algorithm>

#include "base/text.h"
#include "doctor/checks.h"

namespace diapason::doctor {
namespace {

// The lists of NCCL_SOCKET_IFNAME and NCCL_IB_HCA: "^" in front excludes, "=" takes names exactly;
// otherwise an entry is the beginning of a name.
struct NamedList {
  bool excludes = false;
  bool exact = false;
  std::vector<std::string> entries;
};

NamedList ReadNamedList(std::string_view text) {
  NamedList list;
  if (text.starts_with('^')) {
    list.excludes = true;
    text.remove_prefix(1);
  }
  if (text.starts_with('=')) {
    list.exact = true;
    text.remove_prefix(1);
  }
  for (const std::string_view entry : Split(text, ',')) {
    if (!entry.empty()) list.entries.emplace_back(entry);
  }
  return list;
}

bool Fits(const std::string& entry, const std::string& name, bool exact) {
  return exact ? entry == name : name.starts_with(entry);
}

std::string WhatIsThere(const std::vector<std::string>& names) {
  return names.empty() ? "none" : Join(names, ", ");
}

void CheckSocketInterface(const CheckInputs& facts, std::vector<Finding>* findings) {
  const std::string value = facts.Variable("NCCL_SOCKET_IFNAME");
  if (value.empty() || facts.machine.interfaces.empty()) return;
  const NamedList list = ReadNamedList(value);
  std::vector<std::string> names;
  std::vector<std::string> chosen;
  std::vector<std::string> down;
  for (const host::NetInterface& interface : facts.machine.interfaces) {
    names.push_back(interface.name);
    const bool fits = std::any_of(
        list.entries.begin(), list.entries.end(),
        [&](const std::string& entry) { return Fits(entry, interface.name, list.exact); });
    if (fits == list.excludes || (list.excludes && interface.name == "lo")) continue;
    (interface.up ? chosen : down).push_back(interface.name);
  }
  const std::vector<std::string> evidence = {"NCCL_SOCKET_IFNAME=" + value,
                                             "/sys/class/net: " + WhatIsThere(names)};
  if (!chosen.empty()) {
    AddFinding(findings, "net.named", Severity::kFine,
               "NCCL_SOCKET_IFNAME chooses " + Join(chosen, ", "), evidence);
    return;
  }
  AddFinding(findings, "net.named", Severity::kError,
             down.empty()
                 ? "NCCL_SOCKET_IFNAME chooses no network interface of this host: the "
                   "library finds no network and fails"
                 : "NCCL_SOCKET_IFNAME chooses interfaces that are down: " + Join(down, ", "),
             evidence, "name one that is up on every host, or unset it");
}

void CheckGlooInterface(const CheckInputs& facts, std::vector<Finding>* findings) {
  const std::string value = facts.Variable("GLOO_SOCKET_IFNAME");
  if (value.empty() || facts.machine.interfaces.empty()) return;
  for (const std::string_view entry : Split(value, ',')) {
    const bool there =
        std::any_of(facts.machine.interfaces.begin(), facts.machine.interfaces.end(),
                    [entry](const host::NetInterface& one) { return one.name == entry; });
    if (there || entry.empty()) continue;
    AddFinding(findings, "net.named-gloo", Severity::kError,
               "GLOO_SOCKET_IFNAME names '" + std::string(entry) +
                   "', which is not an interface of this host: Gloo fails to start",
               {"GLOO_SOCKET_IFNAME=" + value}, "name one that exists on every host, or unset it");
    return;
  }
}

// "mlx5_0:1" is a device and a port.
bool IsPort(const std::string& entry, const host::RdmaPort& port, bool exact) {
  const size_t colon = entry.find(':');
  if (!Fits(entry.substr(0, colon), port.device, exact)) return false;
  return colon == std::string::npos || entry.substr(colon + 1) == std::to_string(port.port);
}

void CheckAdapters(const CheckInputs& facts, std::vector<Finding>* findings) {
  const std::string value = facts.Variable("NCCL_IB_HCA");
  const std::string disabled = facts.Variable("NCCL_IB_DISABLE");
  if (value.empty() || disabled == "1") return;
  const NamedList list = ReadNamedList(value);
  std::vector<std::string> names;
  std::vector<std::string> chosen;
  for (const host::RdmaPort& port : facts.machine.rdma) {
    const std::string name = port.device + Format(":{}", port.port);
    names.push_back(name);
    const bool fits =
        std::any_of(list.entries.begin(), list.entries.end(),
                    [&](const std::string& entry) { return IsPort(entry, port, list.exact); });
    if (fits != list.excludes) chosen.push_back(name);
  }
  std::vector<std::string> missing;
  for (const std::string& entry : list.entries) {
    const bool there =
        std::any_of(facts.machine.rdma.begin(), facts.machine.rdma.end(),
                    [&](const host::RdmaPort& port) { return IsPort(entry, port, list.exact); });
    if (!there && !list.excludes) missing.push_back(entry);
  }
  const std::vector<std::string> evidence = {"NCCL_IB_HCA=" + value,
                                             "/sys/class/infiniband: " + WhatIsThere(names)};
  if (chosen.empty()) {
    AddFinding(findings, "rdma.named", Severity::kWarning,
               "NCCL_IB_HCA chooses no RDMA port of this host: the library falls back to TCP",
               evidence, "name ports that exist on every host, or unset it");
  } else if (!missing.empty()) {
    AddFinding(findings, "rdma.named", Severity::kWarning,
               "NCCL_IB_HCA names " + Join(missing, ", ") + ", which this host does not have",
               evidence, "name ports that exist on every host");
  } else {
    AddFinding(findings, "rdma.named", Severity::kFine,
               "NCCL_IB_HCA chooses " + Count(chosen.size(), "port"), evidence);
  }
}

void CheckUcxDevices(const CheckInputs& facts, std::vector<Finding>* findings) {
  const std::string value = facts.Variable("UCX_NET_DEVICES");
  if (value.empty() || value == "all" || value.find_first_of("*^[") != std::string::npos) return;
  for (const std::string_view part : Split(value, ',')) {
    const std::string entry(Trim(part));
    if (entry.empty() || entry == "all") continue;
    const bool port =
        std::any_of(facts.machine.rdma.begin(), facts.machine.rdma.end(),
                    [&](const host::RdmaPort& one) { return IsPort(entry, one, /*exact=*/true); });
    const bool interface =
        std::any_of(facts.machine.interfaces.begin(), facts.machine.interfaces.end(),
                    [&](const host::NetInterface& one) { return one.name == entry; });
    if (port || interface) continue;
    AddFinding(findings, "net.named-ucx", Severity::kWarning,
               "UCX_NET_DEVICES names '" + entry + "', which this host does not have",
               {"UCX_NET_DEVICES=" + value}, "name devices that exist on every host, or unset it");
    return;
  }
}

}  // namespace

void CheckNamedDevices(const CheckInputs& facts, std::vector<Finding>* findings) {
  CheckSocketInterface(facts, findings);
  CheckGlooInterface(facts, findings);
  CheckAdapters(facts, findings);
  CheckUcxDevices(facts, findings);
}

}  // namespace diapason::doctor
