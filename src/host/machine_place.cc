#include <algorithm>

#include "base/text.h"
#include "host/machine_parts.h"

namespace diapason::host {
namespace {

constexpr size_t kLargestCpuInfo = size_t{8} << 20;
constexpr uint64_t kNoLimit = uint64_t{1} << 60;
constexpr size_t kDeepestGroup = 64;

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string Hypervisor(const RootFs& tree, const std::string& vendor, const std::string& product) {
  if (const auto type = tree.Read("/sys/hypervisor/type"); type && !type->empty()) return *type;
  const std::string info = tree.Read("/proc/cpuinfo", kLargestCpuInfo).value_or("");
  if (!Has(ValueOf(info, "flags"), "hypervisor")) return "";
  if (Has(vendor, "QEMU") || Has(product, "KVM") || Has(vendor, "Google") ||
      Has(vendor, "Amazon EC2")) {
    return "kvm";
  }
  if (Has(vendor, "Microsoft")) return "hyper-v";
  if (Has(vendor, "VMware")) return "vmware";
  if (Has(vendor, "Xen")) return "xen";
  return "some";
}

std::string Cloud(const RootFs& tree, const std::string& vendor, const std::string& product) {
  const std::string tag = tree.Read("/sys/class/dmi/id/chassis_asset_tag").value_or("");
  if (Has(vendor, "Amazon EC2")) return "aws";
  if (Has(vendor, "Google") || Has(product, "Google Compute Engine")) return "gcp";
  // The asset tag of every Azure machine.
  if (tag == "7783-7084-3265-9085-8269-3286-77") return "azure";
  if (Has(tag, "OracleCloud")) return "oracle";
  if (Has(vendor, "Alibaba")) return "alibaba";
  if (Has(vendor, "Tencent")) return "tencent";
  if (Has(vendor, "DigitalOcean")) return "digitalocean";
  return "";
}

std::string Container(const RootFs& tree, const Environment& environment) {
  if (environment.Get("KUBERNETES_SERVICE_HOST")) return "kubernetes";
  if (environment.Get("APPTAINER_CONTAINER") || environment.Get("SINGULARITY_CONTAINER") ||
      tree.Exists("/.singularity.d")) {
    return "apptainer";
  }
  if (tree.Exists("/.dockerenv")) return "docker";
  if (tree.Exists("/run/.containerenv")) return "podman";
  if (const auto kind = tree.Read("/run/systemd/container"); kind && !kind->empty()) return *kind;
  const std::string groups = tree.Read("/proc/1/cgroup").value_or("");
  if (Has(groups, "kubepods")) return "kubernetes";
  if (Has(groups, "/docker/") || Has(groups, "/docker-")) return "docker";
  return "";
}

// A limit in CPUs from "200000 100000"; 0 for "max ...".
double QuotaOf(const std::string& text) {
  const std::vector<std::string_view> words = Split(text, ' ');
  uint64_t quota = 0;
  uint64_t period = 0;
  if (words.size() != 2 || !ParseUnsigned(words[0], &quota) || !ParseUnsigned(words[1], &period) ||
      period == 0) {
    return 0;
  }
  return static_cast<double>(quota) / static_cast<double>(period);
}

void TakeQuota(double quota, Machine* machine) {
  if (quota > 0 && (machine->cpu_quota <= 0 || quota < machine->cpu_quota)) {
    machine->cpu_quota = quota;
  }
}

// The tightest limit, and the file that has it.
void TakeLimit(const RootFs& tree, const std::string& file, uint64_t* least, std::string* where) {
  const std::optional<std::string> text = tree.Read(file);
  uint64_t limit = 0;
  if (!text || !ParseUnsigned(*text, &limit) || limit == 0 || limit >= kNoLimit) return;
  if (*least != 0 && limit >= *least) return;
  *least = limit;
  *where = file;
}

// The cgroup of this process and its ancestors: the tightest limit applies.
void LookAtGroups(const RootFs& tree, Machine* machine) {
  std::string unified = "/";
  std::string cpu = "/";
  std::string memory = "/";
  std::string pids = "/";
  const std::string groups = tree.Read("/proc/self/cgroup").value_or("");
  for (const std::string_view line : Split(groups, '\n')) {
    const std::vector<std::string_view> parts = Split(line, ':');
    if (parts.size() < 3) continue;
    const std::string path(parts[2]);
    if (parts[0] == "0" && parts[1].empty()) unified = path;
    if (parts[1].starts_with("cpu,") || parts[1] == "cpu") cpu = path;
    if (parts[1] == "memory") memory = path;
    if (parts[1] == "pids") pids = path;
  }
  const auto each = [](std::string path, const auto& take) {
    for (size_t depth = 0; depth < kDeepestGroup; ++depth) {
      take(path == "/" ? "" : path);
      const size_t slash = path.rfind('/');
      if (slash == std::string::npos || path == "/") return;
      path = slash == 0 ? "/" : path.substr(0, slash);
    }
  };
  each(unified, [&](const std::string& path) {
    TakeQuota(QuotaOf(tree.Read("/sys/fs/cgroup" + path + "/cpu.max").value_or("")), machine);
    TakeLimit(tree, "/sys/fs/cgroup" + path + "/memory.max", &machine->memory_limit,
              &machine->memory_limit_file);
    TakeLimit(tree, "/sys/fs/cgroup" + path + "/pids.max", &machine->tasks_limit,
              &machine->tasks_limit_file);
  });
  each(cpu, [&](const std::string& path) {
    const std::string folder = "/sys/fs/cgroup/cpu" + path;
    const std::string quota = tree.Read(folder + "/cpu.cfs_quota_us").value_or("");
    const std::string period = tree.Read(folder + "/cpu.cfs_period_us").value_or("");
    TakeQuota(QuotaOf(quota + " " + period), machine);
  });
  each(memory, [&](const std::string& path) {
    TakeLimit(tree, "/sys/fs/cgroup/memory" + path + "/memory.limit_in_bytes",
              &machine->memory_limit, &machine->memory_limit_file);
  });
  each(pids, [&](const std::string& path) {
    TakeLimit(tree, "/sys/fs/cgroup/pids" + path + "/pids.max", &machine->tasks_limit,
              &machine->tasks_limit_file);
  });
  // A limit above the physical memory has no effect.
  if (machine->memory_limit >= machine->memory_bytes && machine->memory_bytes > 0) {
    machine->memory_limit = 0;
  }
}

}  // namespace

void LookAtSurroundings(const RootFs& tree, const Environment& environment, Machine* machine) {
  const std::string vendor = tree.Read("/sys/class/dmi/id/sys_vendor").value_or("");
  const std::string product = tree.Read("/sys/class/dmi/id/product_name").value_or("");
  machine->hypervisor = Hypervisor(tree, vendor, product);
  machine->cloud = Cloud(tree, vendor, product);
  machine->container = Container(tree, environment);
  LookAtGroups(tree, machine);
}

}  // namespace diapason::host
