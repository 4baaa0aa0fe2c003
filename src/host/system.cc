#include "host/system.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/text.h"
#include "base/units.h"
#include "host/machine_parts.h"
#include "host/paths.h"

namespace diapason::host {
namespace {

constexpr size_t kLargestMounts = size_t{4} << 20;
constexpr size_t kMostProcesses = 20000;
constexpr size_t kConfigSize = 4096;
const char* const kPci = "/sys/bus/pci/devices/";

// "size=65536k" among the options of a mount.
std::optional<uint64_t> MountSize(std::string_view options) {
  for (const std::string_view option : Split(options, ',')) {
    if (!option.starts_with("size=")) continue;
    const Result<uint64_t> size = ParseBytes(option.substr(5));
    if (size.ok()) return size.value();
  }
  return std::nullopt;
}

void LookAtShm(const RootFs& tree, const Machine& machine, System* system) {
  const std::string mounts = tree.Read("/proc/self/mounts", kLargestMounts).value_or("");
  for (const std::string_view line : Split(mounts, '\n')) {
    const std::vector<std::string_view> words = Split(line, ' ');
    if (words.size() < 4 || words[1] != "/dev/shm") continue;
    system->shm_bytes = MountSize(words[3]);
    // Without a size the kernel allows half of the memory.
    if (!system->shm_bytes && words[2] == "tmpfs" && machine.memory_bytes > 0) {
      system->shm_bytes = machine.memory_bytes / 2;
    }
  }
  struct statvfs about {};
  if (!tree.live() || statvfs("/dev/shm", &about) != 0 || about.f_frsize == 0) return;
  system->shm_bytes = uint64_t{about.f_blocks} * about.f_frsize;
  system->shm_free = uint64_t{about.f_bavail} * about.f_frsize;
}

// "[always] madvise never" -> "always".
std::string Chosen(const std::string& text) {
  const size_t open = text.find('[');
  const size_t close = text.find(']');
  return open == std::string::npos || close == std::string::npos || close < open
             ? ""
             : text.substr(open + 1, close - open - 1);
}

void LookAtIommu(const RootFs& tree, const Machine& machine, System* system) {
  if (tree.List("/sys/class/iommu").empty()) {
    // A tree without the folder is no evidence; a kernel without an IOMMU has an empty one.
    if (tree.IsFolder("/sys/class/iommu")) system->iommu = "off";
    return;
  }
  const auto look = [&](const std::string& folder) {
    const std::string type = tree.Read(folder + "/type", 256).value_or("");
    if (type.empty() || system->iommu == "translated") return;
    system->iommu = type == "identity" ? "passthrough" : "translated";
  };
  for (const Gpu& gpu : machine.gpus) look(kPci + gpu.pci + "/iommu_group");
  for (const RdmaPort& port : machine.rdma) look(kPci + port.pci + "/iommu_group");
  // If the GPUs' own groups tell, other devices do not matter.
  if (!system->iommu.empty()) return;
  for (const std::string& group : tree.List("/sys/kernel/iommu_groups")) {
    look("/sys/kernel/iommu_groups/" + group);
  }
}

// Whether this process may lock memory beyond its limit (CAP_IPC_LOCK).
bool MayLock(const RootFs& tree) {
  constexpr unsigned long long kIpcLock = 1ull << 14;
  const std::string mask = ValueOf(tree.Read("/proc/self/status").value_or(""), "CapEff");
  return (std::strtoull(mask.c_str(), nullptr, 16) & kIpcLock) != 0;
}

uint32_t Word(const std::string& bytes, size_t at) {
  uint32_t word = 0;
  if (at + sizeof word <= bytes.size()) std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

// Whether the port redirects requests or completions between its devices upstream. nullopt without
// the extended configuration space, which only root may read.
std::optional<bool> RedirectsTraffic(const std::string& config) {
  constexpr size_t kFirst = 0x100;
  constexpr uint32_t kAccessControl = 0x000d;
  constexpr uint32_t kRedirects = 0x0c;
  if (config.size() <= kFirst) return std::nullopt;
  size_t at = kFirst;
  for (int seen = 0; seen < 96 && at >= kFirst && at + 8 <= config.size(); ++seen) {
    const uint32_t head = Word(config, at);
    if ((head & 0xffff) == kAccessControl) return (Word(config, at + 4) >> 16 & kRedirects) != 0;
    at = head >> 20;
  }
  return false;
}

void LookAtBridges(const RootFs& tree, System* system) {
  std::vector<std::string> redirecting;
  bool readable = false;
  std::vector<std::string> names = tree.List("/sys/bus/pci/devices");
  std::sort(names.begin(), names.end());
  for (const std::string& pci : names) {
    const std::string folder = kPci + pci;
    const std::string kind = tree.Read(folder + "/class", 64).value_or("");
    if (kind.starts_with("0x0680") && tree.Read(folder + "/vendor", 64) == "0x10de") {
      system->switches = true;
    }
    if (!kind.starts_with("0x0604")) continue;
    ++system->pci_ports;
    std::optional<std::string> config = tree.Read(folder + "/config", kConfigSize);
    if (!config) continue;
    // Read() strips trailing blanks, and a register may look like one.
    if (config->size() > 0x100) config->resize(kConfigSize, '\0');
    const std::optional<bool> redirects = RedirectsTraffic(*config);
    if (!redirects) continue;
    readable = true;
    if (*redirects) redirecting.push_back(pci);
  }
  if (readable) system->access_control = redirecting;
}

// "6.8.0-45-generic" is at least `major`.`minor`.
bool KernelAtLeast(const std::string& kernel, int major, int minor) {
  int have_major = 0;
  int have_minor = 0;
  if (std::sscanf(kernel.c_str(), "%5d.%5d", &have_major, &have_minor) != 2) return false;
  return have_major > major || (have_major == major && have_minor >= minor);
}

void LookAtPeerMemory(const RootFs& tree, const Machine& machine, System* system) {
  system->peer_memory = tree.IsFolder("/sys/module/nvidia_peermem") ||
                        tree.IsFolder("/sys/module/nv_peer_mem") ||
                        tree.Exists("/sys/kernel/mm/memory_peers/amdkfd/version");
  const std::string version = tree.Read("/proc/driver/nvidia/version").value_or("");
  system->open_driver = version.find("Open Kernel Module") != std::string::npos;
  const bool amd = !machine.gpus.empty() && machine.gpus.front().vendor == Vendor::kAmd;
  const bool modern = KernelAtLeast(machine.kernel, 5, 12);
  if (amd) {
    const std::string config =
        tree.Read("/boot/config-" + machine.kernel, size_t{1} << 20).value_or("");
    system->dma_buf = config.find("CONFIG_PCI_P2PDMA=y") != std::string::npos &&
                      config.find("CONFIG_DMABUF_MOVE_NOTIFY=y") != std::string::npos;
  } else {
    system->dma_buf = system->open_driver && modern;
  }
  system->gdrcopy = tree.IsFolder("/sys/module/gdrdrv");
  system->rdma_files = !tree.List("/dev/infiniband").empty();
}

// The fabric manager is a process of the host.
std::optional<bool> FabricManagerRuns(const RootFs& tree, const Machine& machine) {
  size_t looked = 0;
  for (const std::string& name : tree.List("/proc")) {
    uint64_t pid = 0;
    if (!ParseUnsigned(name, &pid)) continue;
    if (++looked > kMostProcesses) break;
    // The kernel truncates names to 15 characters.
    if (tree.Read("/proc/" + name + "/comm", 64).value_or("").starts_with("nv-fabricmanage")) {
      return true;
    }
  }
  if (!machine.container.empty() || looked == 0) return std::nullopt;
  return false;
}

}  // namespace

std::optional<uint64_t> LimitIn(const std::string& text, std::string_view name) {
  const std::string rest = ValueOf(text, name);
  const std::string soft = rest.substr(0, rest.find(' '));
  if (soft == "unlimited") return kUnlimited;
  uint64_t value = 0;
  return ParseUnsigned(soft, &value) ? std::optional<uint64_t>(value) : std::nullopt;
}

System LookAtSystem(const RootFs& tree, const Machine& machine) {
  System system;
  LookAtShm(tree, machine, &system);
  const std::string limits = tree.Read("/proc/self/limits").value_or("");
  system.memlock = LimitIn(limits, "Max locked memory");
  system.may_lock = MayLock(tree);
  system.open_files = LimitIn(limits, "Max open files");
  system.processes = LimitIn(limits, "Max processes");
  system.stack = LimitIn(limits, "Max stack size");
  system.numa_balancing = tree.ReadNumber("/proc/sys/kernel/numa_balancing");
  system.huge_pages = Chosen(tree.Read("/sys/kernel/mm/transparent_hugepage/enabled").value_or(""));
  system.command_line = tree.Read("/proc/cmdline").value_or("");
  LookAtIommu(tree, machine, &system);
  LookAtBridges(tree, &system);
  LookAtPeerMemory(tree, machine, &system);
  // The folder exists wherever the module is loaded; a switch is an entry in it.
  if (!tree.List("/proc/driver/nvidia-nvswitch/devices").empty()) system.switches = true;
  if (system.switches) system.fabric_manager = FabricManagerRuns(tree, machine);
  return system;
}

}  // namespace diapason::host
