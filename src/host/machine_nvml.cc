#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "base/text.h"
#include "host/machine_parts.h"
#include "host/nvml.h"

namespace diapason::host {
namespace {

constexpr std::chrono::seconds kPatience{8};
constexpr unsigned kMostGpus = 256;

// The library's answers. Filled by a thread that may be abandoned.
struct NvmlAnswer {
  std::string trouble;
  std::string driver;
  std::string cuda;
  std::vector<Gpu> gpus;
  std::vector<GpuPair> pairs;
};

// Strings from the library may lack a terminator within their buffers.
template <size_t size>
std::string TextIn(const char (&buffer)[size]) {
  const std::string_view all(buffer, size);
  return std::string(all.substr(0, all.find('\0')));
}

// "00000000:41:00.0" -> "0000:41:00.0", as the kernel names it.
std::string KernelName(const Nvml::Pci& pci) {
  return Format("{:04x}:{:02x}:{:02x}.0", pci.domain & 0xffff, pci.bus & 0xff, pci.device & 0xff);
}

std::vector<std::string> ReasonsOf(unsigned long long bits) {
  // The bits for "idle" and for application clocks are not throttling.
  static constexpr std::array<std::pair<unsigned long long, const char*>, 5> kReasons = {
      {{0x4, "power cap"},
       {0x8, "hardware slowdown"},
       {0x20, "thermal (software)"},
       {0x40, "thermal (hardware)"},
       {0x80, "power brake"}}};
  std::vector<std::string> reasons;
  for (const auto& [bit, reason] : kReasons) {
    if ((bits & bit) != 0) reasons.emplace_back(reason);
  }
  return reasons;
}

void AskLinks(const Nvml& nvml, void* device, Gpu* gpu) {
  if (nvml.LinkState == nullptr) return;
  for (unsigned link = 0; link < Nvml::kMostLinks; ++link) {
    int up = 0;
    // A link that this GPU does not have is an error.
    if (nvml.LinkState(device, link, &up) != Nvml::kSuccess) continue;
    ++(up != 0 ? gpu->fabric_links : gpu->fabric_links_down);
    if (up == 0 || nvml.LinkErrors == nullptr) continue;
    for (const int counter : {0, 1, 2}) {  // replays, recoveries, checksums of flits
      unsigned long long errors = 0;
      if (nvml.LinkErrors(device, link, counter, &errors) == Nvml::kSuccess) {
        gpu->fabric_errors += errors;
      }
    }
  }
}

void AskState(const Nvml& nvml, void* device, Gpu* gpu) {
  unsigned number = 0;
  if (nvml.Temperature != nullptr && nvml.Temperature(device, 0, &number) == Nvml::kSuccess) {
    gpu->temperature_c = static_cast<int>(number);
  }
  if (nvml.Power != nullptr && nvml.Power(device, &number) == Nvml::kSuccess) {
    gpu->power_w = number * 1e-3;
  }
  if (nvml.PowerLimit != nullptr && nvml.PowerLimit(device, &number) == Nvml::kSuccess) {
    gpu->power_limit_w = number * 1e-3;
  }
  if (nvml.Clock != nullptr && nvml.Clock(device, Nvml::kSmClock, &number) == Nvml::kSuccess) {
    gpu->clock_mhz = static_cast<int>(number);
  }
  if (nvml.MostClock != nullptr &&
      nvml.MostClock(device, Nvml::kSmClock, &number) == Nvml::kSuccess) {
    gpu->most_clock_mhz = static_cast<int>(number);
  }
  unsigned long long bits = 0;
  if (nvml.Throttling != nullptr && nvml.Throttling(device, &bits) == Nvml::kSuccess) {
    gpu->throttling = ReasonsOf(bits);
  }
  unsigned long long errors = 0;
  if (nvml.EccErrors != nullptr &&
      nvml.EccErrors(device, Nvml::kUncorrected, Nvml::kSinceBoot, &errors) == Nvml::kSuccess) {
    gpu->ecc_uncorrected = errors;
  }
  int on = 0;
  if (nvml.Persistence != nullptr && nvml.Persistence(device, &on) == Nvml::kSuccess) {
    gpu->persistence = on != 0;
  }
  int mode = 0;
  if (nvml.ComputeMode != nullptr && nvml.ComputeMode(device, &mode) == Nvml::kSuccess) {
    static constexpr std::array<const char*, 4> kModes = {"default", "exclusive thread",
                                                          "prohibited", "exclusive process"};
    gpu->mode = mode >= 0 && mode < 4 ? kModes[static_cast<size_t>(mode)] : "";
  }
  unsigned pending = 0;
  if (nvml.MigMode != nullptr && nvml.MigMode(device, &number, &pending) == Nvml::kSuccess) {
    gpu->mig = number != 0;
  }
  Nvml::Fabric fabric{};
  if (nvml.FabricInfo != nullptr && nvml.FabricInfo(device, &fabric) == Nvml::kSuccess) {
    static constexpr std::array<const char*, 4> kStates = {"", "not started", "in progress",
                                                           "completed"};
    gpu->fabric_state = fabric.state < 4 ? kStates[fabric.state] : "";
    if (fabric.state == 3 && fabric.status != 0) {
      gpu->fabric_state = Format("failed ({})", fabric.status);
    }
  }
}

Gpu AskGpu(const Nvml& nvml, void* device, int index) {
  Gpu gpu;
  gpu.index = index;
  char text[128] = {};
  if (nvml.Name != nullptr && nvml.Name(device, text, sizeof text) == Nvml::kSuccess) {
    gpu.name = TextIn(text);
  }
  if (nvml.Uuid != nullptr && nvml.Uuid(device, text, sizeof text) == Nvml::kSuccess) {
    gpu.uuid = TextIn(text);
  }
  Nvml::Pci pci{};
  if (nvml.PciInfo != nullptr && nvml.PciInfo(device, &pci) == Nvml::kSuccess) {
    gpu.pci = KernelName(pci);
  }
  int major = 0;
  int minor = 0;
  if (nvml.Capability != nullptr && nvml.Capability(device, &major, &minor) == Nvml::kSuccess) {
    gpu.architecture = Format("sm_{}{}", major, minor);
  }
  Nvml::Memory memory{};
  if (nvml.MemoryInfo != nullptr && nvml.MemoryInfo(device, &memory) == Nvml::kSuccess) {
    gpu.memory_bytes = memory.total;
    gpu.memory_used = memory.used;
  }
  AskLinks(nvml, device, &gpu);
  AskState(nvml, device, &gpu);
  return gpu;
}

// The links of one GPU to each other GPU, and to a switch.
struct Reach {
  std::map<std::string, int> direct;
  int to_switch = 0;
};

Reach AskReach(const Nvml& nvml, void* device) {
  Reach reach;
  if (nvml.LinkState == nullptr) return reach;
  for (unsigned link = 0; link < Nvml::kMostLinks; ++link) {
    int up = 0;
    if (nvml.LinkState(device, link, &up) != Nvml::kSuccess || up == 0) continue;
    int kind = 0;
    Nvml::Pci pci{};
    if (nvml.LinkRemoteKind != nullptr &&
        nvml.LinkRemoteKind(device, link, &kind) == Nvml::kSuccess &&
        kind == Nvml::kRemoteIsSwitch) {
      ++reach.to_switch;
    } else if (nvml.LinkRemote != nullptr &&
               nvml.LinkRemote(device, link, &pci) == Nvml::kSuccess) {
      ++reach.direct[KernelName(pci)];
    }
  }
  return reach;
}

std::string AncestorName(int level) {
  switch (level) {
    case 0:
      return "same board";
    case 10:
      return "PIX";
    case 20:
      return "PXB";
    case 30:
      return "PHB";
    case 40:
      return "NODE";
    case 50:
      return "SYS";
    default:
      return "";
  }
}

void AskPairs(const Nvml& nvml, const std::vector<void*>& devices, NvmlAnswer* answer) {
  std::vector<Reach> reaches;
  reaches.reserve(devices.size());
  for (void* device : devices) reaches.push_back(AskReach(nvml, device));
  for (size_t from = 0; from < devices.size(); ++from) {
    for (size_t to = 0; to < devices.size(); ++to) {
      if (from == to) continue;
      GpuPair pair;
      pair.from = static_cast<int>(from);
      pair.to = static_cast<int>(to);
      int value = 0;
      const auto direct = reaches[from].direct.find(answer->gpus[to].pci);
      const int by_switch = std::min(reaches[from].to_switch, reaches[to].to_switch);
      if (direct != reaches[from].direct.end()) {
        pair.path = Format("NV{}", direct->second);
      } else if (by_switch > 0) {
        pair.path = Format("NV{}", by_switch);
      } else if (nvml.CommonAncestor != nullptr &&
                 nvml.CommonAncestor(devices[from], devices[to], &value) == Nvml::kSuccess) {
        pair.path = AncestorName(value);
      }
      if (nvml.PeerStatus != nullptr &&
          nvml.PeerStatus(devices[from], devices[to], Nvml::kPeerRead, &value) == Nvml::kSuccess) {
        pair.peer_read = value == 0;
      }
      answer->pairs.push_back(std::move(pair));
    }
  }
}

void Ask(const Nvml& nvml, NvmlAnswer* answer) {
  char version[96] = {};
  if (nvml.DriverVersion != nullptr &&
      nvml.DriverVersion(version, sizeof version) == Nvml::kSuccess) {
    answer->driver = TextIn(version);
  }
  int cuda = 0;
  if (nvml.CudaVersion != nullptr && nvml.CudaVersion(&cuda) == Nvml::kSuccess && cuda > 0) {
    answer->cuda = Format("CUDA {}.{}", cuda / 1000, cuda % 1000 / 10);
  }
  unsigned count = 0;
  if (nvml.Count(&count) != Nvml::kSuccess) {
    answer->trouble = "NVML: cannot count the GPUs";
    return;
  }
  std::vector<void*> devices;
  for (unsigned i = 0; i < std::min(count, kMostGpus); ++i) {
    void* device = nullptr;
    if (nvml.ByIndex(i, &device) != Nvml::kSuccess) {
      answer->trouble = Format("NVML: GPU {} does not answer", i);
      continue;
    }
    answer->gpus.push_back(AskGpu(nvml, device, static_cast<int>(devices.size())));
    devices.push_back(device);
  }
  if (devices.size() <= 64) AskPairs(nvml, devices, answer);
}

std::shared_ptr<NvmlAnswer> AskLibrary() {
  auto answer = std::make_shared<NvmlAnswer>();
  // Not closed again: unloading driver libraries has caused crashes.
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    answer->trouble = "NVML: libnvidia-ml.so.1 is not here, or cannot be loaded";
    return answer;
  }
  Nvml nvml{};
  if (!nvml.Load(library)) {
    answer->trouble = "NVML: libnvidia-ml.so.1 lacks functions that every driver has";
    return answer;
  }
  if (const int error = nvml.Init(); error != Nvml::kSuccess) {
    answer->trouble = Format(
        "NVML: cannot be started (error {}): no driver, or one that does not "
        "belong to this library",
        error);
    return answer;
  }
  Ask(nvml, answer.get());
  nvml.Shutdown();
  return answer;
}

// Combines a GPU's data from the library with those from the bus.
void Merge(const RootFs& tree, const NvmlAnswer& answer, Machine* machine) {
  if (!answer.driver.empty()) machine->driver = answer.driver;
  machine->driver_supports = answer.cuda;
  if (answer.gpus.empty()) return;
  machine->gpus = answer.gpus;
  machine->pairs = answer.pairs;
  for (Gpu& gpu : machine->gpus) FillFromPci(tree, &gpu);
}

}  // namespace

void AskNvml(const RootFs& tree, Machine* machine) {
  if (!tree.live()) return;
  // A machine with AMD GPUs does not need it.
  if (!machine->gpus.empty() && machine->gpus.front().vendor == Vendor::kAmd) return;
  std::promise<std::shared_ptr<NvmlAnswer>> promise;
  std::future<std::shared_ptr<NvmlAnswer>> future = promise.get_future();
  // A hanging driver must not block this process: the thread is abandoned, and shares nothing with
  // it.
  std::thread([promise = std::move(promise)]() mutable {
    promise.set_value(AskLibrary());
  }).detach();
  if (future.wait_for(kPatience) != std::future_status::ready) {
    machine->unknown.push_back(Format("NVML: no answer within {} s", kPatience.count()));
    return;
  }
  const std::shared_ptr<NvmlAnswer> answer = future.get();
  // Without a GPU on the bus it is not missing.
  const bool missed = !machine->gpus.empty() || machine->gpus_on_bus > 0 ||
                      tree.Exists("/proc/driver/nvidia/version");
  if (!answer->trouble.empty() && missed) machine->unknown.push_back(answer->trouble);
  Merge(tree, *answer, machine);
}

}  // namespace diapason::host
