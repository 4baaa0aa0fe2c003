#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "doctor/checks.h"
#include "doctor/facts.h"

namespace diapason::doctor {
namespace {

constexpr size_t kLongestValue = 512;

// "8 x A", or "4 x A + 4 x B".
std::string Tally(const std::vector<std::string>& values) {
  std::map<std::string, size_t> counts;
  for (const std::string& value : values) ++counts[value];
  std::vector<std::string> parts;
  for (const auto& [value, count] : counts) {
    parts.push_back(Format("{} x {}", count, value));
  }
  return Join(parts, " + ");
}

template <typename Item, typename Text>
std::string TallyOf(const std::vector<Item>& items, const Text& text) {
  std::vector<std::string> values;
  for (const Item& item : items) {
    const std::string value = text(item);
    if (!value.empty()) values.push_back(value);
  }
  return Tally(values);
}

std::string LimitText(const std::optional<uint64_t>& limit) {
  if (!limit) return "";
  return *limit == host::kUnlimited ? "unlimited" : std::to_string(*limit);
}

std::string PortText(const host::RdmaPort& port) {
  const std::string kind = port.link_layer == "Ethernet" ? "RoCE" : port.link_layer;
  return Format("{} {:g} Gb/s {}", kind, port.gbits, ToLower(port.state));
}

// The firmware reserves different amounts of memory: whole gigabytes are precise enough to compare.
std::string Gigabytes(uint64_t bytes) { return bytes == 0 ? "" : Format("{} GiB", bytes >> 30); }

}  // namespace

std::vector<std::pair<std::string, std::string>> ComparableFacts(const CheckInputs& facts) {
  const host::Machine& machine = facts.machine;
  const host::System& system = facts.system;
  std::vector<std::pair<std::string, std::string>> list;
  const auto add = [&list](const std::string& name, std::string value) {
    if (value.size() > kLongestValue) value.resize(kLongestValue);
    if (!value.empty()) list.emplace_back(name, std::move(value));
  };
  add("kernel", machine.kernel);
  add("distribution", machine.distribution);
  add("CPUs",
      machine.cpu_model.empty() && machine.threads == 0
          ? ""
          : Format("{} x {}, {} threads", machine.sockets, machine.cpu_model, machine.threads));
  add("memory", Gigabytes(machine.memory_bytes));
  add("NUMA nodes", machine.numa.empty() ? "" : std::to_string(machine.numa.size()));
  add("GPUs", std::to_string(machine.gpus.size()));
  add("GPU models", TallyOf(machine.gpus, [](const host::Gpu& gpu) { return gpu.name; }));
  add("GPU memory",
      TallyOf(machine.gpus, [](const host::Gpu& gpu) { return Gigabytes(gpu.memory_bytes); }));
  add("PCIe lanes of GPUs", TallyOf(machine.gpus, [](const host::Gpu& gpu) {
        return gpu.link.width > 0 ? Format("x{}", gpu.link.width) : std::string();
      }));
  add("GPU links", TallyOf(machine.gpus, [](const host::Gpu& gpu) {
        return gpu.fabric_links + gpu.fabric_links_down > 0 ? Format("{} up", gpu.fabric_links)
                                                            : std::string();
      }));
  add("fabric state", TallyOf(machine.gpus, [](const host::Gpu& gpu) { return gpu.fabric_state; }));
  add("compute mode", TallyOf(machine.gpus, [](const host::Gpu& gpu) { return gpu.mode; }));
  // The mode is set only if the driver answered.
  add("MIG", TallyOf(machine.gpus, [](const host::Gpu& gpu) {
        return gpu.mode.empty() ? "" : std::string(gpu.mig ? "on" : "off");
      }));
  add("driver", machine.driver);
  add("driver supports", machine.driver_supports);
  const host::LibraryFile* loaded = facts.Loaded();
  add("collective library",
      loaded == nullptr ? std::string("none")
                        : std::string(LibraryTitle(loaded->library)) + " " + VersionOf(*loaded));
  add("library built for", loaded == nullptr ? "" : loaded->toolkit);
  std::set<std::string> torches;
  for (const host::Torch& torch : facts.torch) torches.insert(torch.version);
  add("PyTorch", Join({torches.begin(), torches.end()}, ", "));
  add("RDMA ports", TallyOf(machine.rdma, PortText));
  add("RoCE v2 GID index", TallyOf(machine.rdma, [](const host::RdmaPort& port) {
        return port.rocev2_ipv4_gid >= 0 ? std::to_string(port.rocev2_ipv4_gid) : std::string();
      }));
  add("network interfaces", TallyOf(machine.interfaces, [](const host::NetInterface& interface) {
        return interface.up && !interface.virtual_one
                   ? Format("{:g} Gb/s MTU {}", interface.gbits, interface.mtu)
                   : std::string();
      }));
  add("direct RDMA to GPUs", machine.gpus.empty() || machine.rdma.empty() ? ""
                             : system.peer_memory                         ? "peer memory"
                             : system.dma_buf                             ? "DMA-BUF"
                                                                          : "none");
  add("IOMMU", system.iommu);
  add("NUMA balancing",
      system.numa_balancing ? std::to_string(*system.numa_balancing) : std::string());
  add("governor", machine.governor);
  add("locked memory", LimitText(system.memlock));
  add("open files", LimitText(system.open_files));
  add("/dev/shm", system.shm_bytes ? Gigabytes(*system.shm_bytes) == "0 GiB"
                                         ? AboutBytes(*system.shm_bytes)
                                         : Gigabytes(*system.shm_bytes)
                                   : std::string());
  for (const knobs::Assignment& one : facts.assignments) {
    if (!one.overridden) add("variable " + one.name, one.value.empty() ? "(empty)" : one.value);
  }
  return list;
}

std::vector<std::string> DescribeMachine(const CheckInputs& facts) {
  const host::Machine& machine = facts.machine;
  std::vector<std::string> lines;
  const auto add = [&lines](const std::string& line) {
    if (!line.empty()) lines.push_back(line);
  };
  std::string host = machine.host_name.empty() ? "this machine" : machine.host_name;
  std::vector<std::string> about;
  if (machine.threads > 0) {
    about.push_back(Format("{}, {}",
                           machine.cpu_model.empty() ? "CPU of unknown model" : machine.cpu_model,
                           Count(static_cast<size_t>(machine.threads), "thread")));
  }
  if (machine.memory_bytes > 0) about.push_back(AboutBytes(machine.memory_bytes));
  if (!machine.kernel.empty()) about.push_back("Linux " + machine.kernel);
  if (!machine.hypervisor.empty()) {
    about.push_back(machine.cloud.empty() ? "virtual" : "virtual, " + machine.cloud);
  }
  if (!machine.container.empty()) about.push_back("in a container (" + machine.container + ")");
  add(host + ": " + Join(about, "; "));
  if (machine.gpus.empty()) {
    add("GPUs:    none");
  } else {
    add("GPUs:    " + TallyOf(machine.gpus, [](const host::Gpu& gpu) { return gpu.name; }) +
        (machine.driver.empty() ? "" : "; driver " + machine.driver) +
        (machine.driver_supports.empty() ? "" : " (" + machine.driver_supports + ")"));
  }
  const host::LibraryFile* loaded = facts.Loaded();
  add("library: " +
      (loaded == nullptr
           ? std::string("none found")
           : std::string(LibraryTitle(loaded->library)) + " " + VersionOf(*loaded) +
                 (loaded->toolkit.empty() ? "" : " for " + loaded->toolkit) + ", " + loaded->path +
                 (facts.job.by_name ? "" : " (" + facts.job.WhyText() + ")")));
  for (const host::Torch& torch : facts.torch)
    add("PyTorch: " + torch.version + ", " + torch.folder);
  const std::string ports = TallyOf(machine.rdma, PortText);
  const std::string interfaces =
      TallyOf(machine.interfaces, [](const host::NetInterface& interface) {
        if (!interface.up || interface.virtual_one) return std::string();
        return interface.gbits > 0 ? Format("Ethernet {:g} Gb/s", interface.gbits)
                                   : "interface of unknown speed";
      });
  if (!ports.empty() || !interfaces.empty()) {
    add("network: " + ports + (ports.empty() || interfaces.empty() ? "" : " + ") + interfaces);
  }
  return lines;
}

}  // namespace diapason::doctor
