#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/text.h"
#include "host/machine_parts.h"
#include "host/paths.h"

namespace diapason::host {
namespace {

constexpr size_t kMostGpus = 256;
constexpr uint64_t kXgmi = 11;  // among the kernel's types of links between nodes
const char* const kPci = "/sys/bus/pci/devices/";

uint64_t NumberOf(const std::string& text, std::string_view key) {
  uint64_t value = 0;
  return ParseUnsigned(ValueOf(text, key), &value) ? value : 0;
}

// "32.0 GT/s PCIe" -> 32.
double SpeedOf(const RootFs& tree, const std::string& path) {
  const double speed = std::strtod(tree.Read(path, 256).value_or("").c_str(), nullptr);
  return std::isfinite(speed) && speed > 0 && speed < 1e6 ? speed : 0;
}

int WidthOf(const RootFs& tree, const std::string& path) {
  // A missing port reports 255 lanes.
  const auto width = tree.ReadNumber(path);
  return width && *width > 0 && *width <= 32 ? static_cast<int>(*width) : 0;
}

template <typename Number>
Number SmallerKnown(Number a, Number b) {
  return a > 0 && b > 0 ? std::min(a, b) : a;
}

std::vector<std::string> PciParts(const RootFs& tree, const std::string& pci) {
  const std::string real = RealPath(tree, kPci + pci);
  std::vector<std::string> parts;
  for (const std::string_view part : Split(real, '/')) {
    const bool root = part.starts_with("pci") && part.find(':') != std::string_view::npos;
    if (root || std::count(part.begin(), part.end(), ':') == 2) parts.emplace_back(part);
  }
  return parts;
}

void LookAtNvidia(const RootFs& tree, Machine* machine) {
  const std::string folder = "/proc/driver/nvidia/gpus";
  std::vector<std::string> names = tree.List(folder);
  // By bus address, as the driver counts them; the numbers in these names are hexadecimal.
  std::sort(names.begin(), names.end());
  for (const std::string& pci : names) {
    if (machine->gpus.size() >= kMostGpus) return;
    const auto information = tree.Read(folder + "/" + pci + "/information");
    if (!information) continue;
    Gpu gpu;
    gpu.index = static_cast<int>(machine->gpus.size());
    gpu.vendor = Vendor::kNvidia;
    gpu.name = ValueOf(*information, "Model");
    gpu.uuid = ValueOf(*information, "GPU UUID");
    gpu.pci = ToLower(pci);
    FillFromPci(tree, &gpu);
    machine->gpus.push_back(std::move(gpu));
  }
}

uint64_t MicroOf(const RootFs& tree, const std::string& folder, const std::string& name) {
  const auto value = tree.ReadNumber(folder + "/" + name);
  return value && *value > 0 ? static_cast<uint64_t>(*value) : 0;
}

// "1: 2100Mhz *" is the current state; the largest number is the maximum.
void FillClocks(const std::string& states, Gpu* gpu) {
  for (const std::string_view line : Split(states, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const double mhz = std::strtod(std::string(line.substr(colon + 1)).c_str(), nullptr);
    if (!std::isfinite(mhz) || mhz <= 0 || mhz > 1e5) continue;
    if (line.find('*') != std::string_view::npos) gpu->clock_mhz = static_cast<int>(mhz);
    gpu->most_clock_mhz = std::max(gpu->most_clock_mhz, static_cast<int>(mhz));
  }
}

void FillFromAmdgpu(const RootFs& tree, Gpu* gpu) {
  const std::string device = kPci + gpu->pci;
  gpu->memory_bytes = MicroOf(tree, device, "mem_info_vram_total");
  gpu->memory_used = MicroOf(tree, device, "mem_info_vram_used");
  const std::string name = tree.Read(device + "/product_name").value_or("");
  gpu->name = name.empty() ? "AMD " + gpu->architecture : name;
  gpu->ecc_uncorrected = NumberOf(tree.Read(device + "/ras/umc_err_count").value_or(""), "ue");
  FillClocks(tree.Read(device + "/pp_dpm_sclk").value_or(""), gpu);
  for (const std::string& sensor : tree.List(device + "/hwmon")) {
    const std::string folder = device + "/hwmon/" + sensor;
    gpu->temperature_c = static_cast<int>(MicroOf(tree, folder, "temp1_input") / 1000);
    uint64_t power = MicroOf(tree, folder, "power1_average");
    if (power == 0) power = MicroOf(tree, folder, "power1_input");
    gpu->power_w = static_cast<double>(power) * 1e-6;
    gpu->power_limit_w = static_cast<double>(MicroOf(tree, folder, "power1_cap")) * 1e-6;
    break;
  }
  FillFromPci(tree, gpu);
}

void LookAtAmd(const RootFs& tree, Machine* machine) {
  const std::string nodes = "/sys/class/kfd/kfd/topology/nodes";
  std::map<uint64_t, size_t> gpu_of_node;
  for (const std::string& name : tree.List(nodes)) {
    uint64_t node = 0;
    if (machine->gpus.size() >= kMostGpus || !ParseUnsigned(name, &node)) continue;
    const std::string text = tree.Read(nodes + "/" + name + "/properties").value_or("");
    const uint64_t version = NumberOf(text, "gfx_target_version");
    if (version == 0) continue;  // a CPU, or a GPU of another container
    Gpu gpu;
    gpu.index = static_cast<int>(machine->gpus.size());
    gpu.vendor = Vendor::kAmd;
    gpu.architecture = Format("gfx{}{}{:x}", version / 10000, version / 100 % 100, version % 100);
    const uint64_t location = NumberOf(text, "location_id");
    gpu.pci =
        Format("{:04x}:{:02x}:{:02x}.{:x}", NumberOf(text, "domain") & 0xffff,
               static_cast<unsigned>(location >> 8 & 0xff),
               static_cast<unsigned>(location >> 3 & 0x1f), static_cast<unsigned>(location & 7));
    gpu.uuid = Format("{:016x}", NumberOf(text, "unique_id"));
    FillFromAmdgpu(tree, &gpu);
    gpu_of_node[node] = machine->gpus.size();
    machine->gpus.push_back(std::move(gpu));
  }
  for (const auto& [node, index] : gpu_of_node) {
    const std::string links = Format("{}/{}/io_links", nodes, node);
    for (const std::string& link : tree.List(links)) {
      const std::string text = tree.Read(links + "/" + link + "/properties").value_or("");
      const auto to = gpu_of_node.find(NumberOf(text, "node_to"));
      if (NumberOf(text, "type") != kXgmi || to == gpu_of_node.end() || to->second == index) {
        continue;
      }
      ++machine->gpus[index].fabric_links;
      machine->pairs.push_back(
          {static_cast<int>(index), static_cast<int>(to->second), "XGMI", true});
    }
  }
}

// GPUs on the bus, with or without a driver.
int CountOnBus(const RootFs& tree) {
  int count = 0;
  for (const std::string& pci : tree.List("/sys/bus/pci/devices")) {
    const std::string kind = tree.Read(kPci + pci + "/class", 64).value_or("");
    const std::string maker = tree.Read(kPci + pci + "/vendor", 64).value_or("");
    const bool display = kind.starts_with("0x0300") || kind.starts_with("0x0302");
    const bool compute =
        kind.starts_with("0x0302") || kind.starts_with("0x0380") || kind.starts_with("0x1200");
    if ((maker == "0x10de" && display) || (maker == "0x1002" && compute)) ++count;
  }
  return count;
}

}  // namespace

std::string CudaOfDriver(const std::string& driver) {
  static constexpr std::array<std::pair<int, const char*>, 20> kBranches = {
      {{450, "11.0"}, {455, "11.1"}, {460, "11.2"}, {465, "11.3"}, {470, "11.4"},
       {495, "11.5"}, {510, "11.6"}, {515, "11.7"}, {520, "11.8"}, {525, "12.0"},
       {530, "12.1"}, {535, "12.2"}, {545, "12.3"}, {550, "12.4"}, {555, "12.5"},
       {560, "12.6"}, {565, "12.7"}, {570, "12.8"}, {575, "12.9"}, {580, "13.0"}}};
  const long branch = std::strtol(driver.c_str(), nullptr, 10);
  std::string cuda;
  for (const auto& [first, version] : kBranches) {
    if (branch >= first) cuda = version;
  }
  return cuda.empty() ? "" : "CUDA " + cuda;
}

void FillFromPci(const RootFs& tree, Gpu* gpu) {
  const std::string device = kPci + gpu->pci;
  const auto node = tree.ReadNumber(device + "/numa_node");
  if (node && *node >= 0 && *node < 65536) gpu->numa_node = static_cast<int>(*node);
  gpu->cpus = tree.Read(device + "/local_cpulist").value_or("");
  PciLink& link = gpu->link;
  link.gts = SpeedOf(tree, device + "/current_link_speed");
  link.most_gts = SpeedOf(tree, device + "/max_link_speed");
  link.width = WidthOf(tree, device + "/current_link_width");
  link.most_width = WidthOf(tree, device + "/max_link_width");
  const std::vector<std::string> parts = PciParts(tree, gpu->pci);
  if (parts.size() < 3) return;
  const std::string port = kPci + parts[parts.size() - 2];
  link.most_gts = SmallerKnown(link.most_gts, SpeedOf(tree, port + "/max_link_speed"));
  link.most_width = SmallerKnown(link.most_width, WidthOf(tree, port + "/max_link_width"));
}

std::string PciPath(const RootFs& tree, const std::string& one, const std::string& other) {
  const std::vector<std::string> a = PciParts(tree, one);
  const std::vector<std::string> b = PciParts(tree, other);
  if (a.size() < 2 || b.size() < 2) return "";
  size_t common = 0;
  while (common < a.size() && common < b.size() && a[common] == b[common]) ++common;
  if (common == 0) {
    const auto of = [&](const std::string& pci) {
      return tree.ReadNumber(kPci + pci + "/numa_node").value_or(-1);
    };
    return of(one) >= 0 && of(one) == of(other) ? "NODE" : "SYS";
  }
  if (common == 1) return "PHB";
  // Below a switch each device has its own port.
  return a.size() - common <= 2 && b.size() - common <= 2 ? "PIX" : "PXB";
}

void LookAtGpus(const RootFs& tree, Machine* machine) {
  LookAtNvidia(tree, machine);
  LookAtAmd(tree, machine);
  machine->gpus_on_bus = CountOnBus(tree);
  for (const Gpu& from : machine->gpus) {
    for (const Gpu& to : machine->gpus) {
      if (from.index == to.index || machine->gpus.size() > 64) continue;
      const bool known = std::any_of(
          machine->pairs.begin(), machine->pairs.end(),
          [&](const GpuPair& pair) { return pair.from == from.index && pair.to == to.index; });
      if (!known) {
        machine->pairs.push_back(
            {from.index, to.index, PciPath(tree, from.pci, to.pci), std::nullopt});
      }
    }
  }
}

}  // namespace diapason::host
