#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/units.h"
#include "doctor/checks.h"

namespace diapason::doctor {
namespace {

constexpr uint64_t kMuchMemory = uint64_t{1} << 30;
constexpr int kHot = 85;

std::string Of(const host::Gpu& gpu) { return Format("GPU {} ({})", gpu.index, gpu.pci); }

void CheckPresence(const CheckInputs& facts, std::vector<Finding>* findings) {
  const host::Machine& machine = facts.machine;
  const auto here = static_cast<int>(machine.gpus.size());
  if (here == 0 && machine.gpus_on_bus == 0) {
    AddFinding(findings, "gpu.none", Severity::kNote,
               "no GPU here: NCCL and RCCL cannot run, collectives on CPUs (Gloo, MPI) can",
               {"/proc/driver/nvidia and /sys/class/kfd: none listed"});
    return;
  }
  if (here == 0) {
    AddFinding(findings, "gpu.no-driver", Severity::kError,
               Count(static_cast<size_t>(machine.gpus_on_bus), "GPU") +
                   " on the PCI bus, but no driver answers for any",
               {"/sys/bus/pci/devices: " + Count(static_cast<size_t>(machine.gpus_on_bus), "GPU")},
               machine.container.empty()
                   ? "install and load the GPU driver"
                   : "start the container with its GPUs (--gpus all, --device=/dev/kfd, a device "
                     "plugin)");
    return;
  }
  if (here < machine.gpus_on_bus) {
    AddFinding(findings, "gpu.fewer",
               machine.container.empty() ? Severity::kWarning : Severity::kNote,
               Format("{} of the {} GPUs on the bus can be used", here, machine.gpus_on_bus),
               {Format("driver: {}, /sys/bus/pci/devices: {}", here, machine.gpus_on_bus)},
               machine.container.empty() ? "look into the kernel's log for a GPU that has fallen "
                                           "off the bus"
                                         : "");
  }
  std::map<std::string, std::vector<int>> models;
  for (const host::Gpu& gpu : machine.gpus) models[gpu.name].push_back(gpu.index);
  if (models.size() > 1) {
    std::vector<std::string> evidence;
    for (const auto& [name, indexes] : models) evidence.push_back(GpuNames(indexes) + ": " + name);
    AddFinding(findings, "gpu.mixed", Severity::kWarning,
               "the GPUs are not all of one model: collectives run at the slowest one's speed",
               evidence, "give a job GPUs of one model only (CUDA_VISIBLE_DEVICES)");
  } else {
    AddFinding(findings, "gpu.present", Severity::kFine,
               Format("{} x {}, all alike", here, machine.gpus[0].name),
               {machine.driver.empty() ? "no driver version told" : "driver " + machine.driver});
  }
}

void CheckHealth(const host::Gpu& gpu, std::vector<Finding>* findings) {
  if (gpu.ecc_uncorrected > 0) {
    AddFinding(
        findings, "gpu.ecc", Severity::kError,
        Format("GPU {} has had memory errors that could not be corrected", gpu.index),
        {Format("{}: {} uncorrected since the driver was loaded", Of(gpu), gpu.ecc_uncorrected)},
        "take it out of service, reset it, and replace it if they come back");
  }
  if (gpu.mode == "prohibited") {
    AddFinding(findings, "gpu.mode", Severity::kError,
               Format("GPU {} admits no program: its compute mode is 'prohibited'", gpu.index),
               {Of(gpu) + ": compute mode prohibited"},
               Format("nvidia-smi -i {} -c DEFAULT", gpu.index));
  } else if (gpu.mode.starts_with("exclusive")) {
    AddFinding(findings, "gpu.mode", Severity::kNote,
               Format("GPU {} admits one process at a time", gpu.index),
               {Of(gpu) + ": compute mode " + gpu.mode});
  }
  if (gpu.mig) {
    AddFinding(
        findings, "gpu.mig", Severity::kWarning,
        Format("GPU {} is split (MIG): its instances have no peer access and no NVLink", gpu.index),
        {Of(gpu) + ": MIG mode on"},
        Format("for collectives across GPUs: nvidia-smi -i {} -mig 0", gpu.index));
  }
  const bool only_power_cap = gpu.throttling.size() == 1 && gpu.throttling[0] == "power cap";
  if (!gpu.throttling.empty()) {
    AddFinding(findings, "gpu.throttled", only_power_cap ? Severity::kNote : Severity::kWarning,
               Format("GPU {} is slowed down now: {}", gpu.index, Join(gpu.throttling, ", ")),
               {Format("{}: {} MHz of {}, {} C, {:.0f} W of {:.0f}", Of(gpu), gpu.clock_mhz,
                       gpu.most_clock_mhz, gpu.temperature_c, gpu.power_w, gpu.power_limit_w)},
               only_power_cap ? "" : "look after cooling and power supply");
  } else if (gpu.temperature_c >= kHot) {
    AddFinding(
        findings, "gpu.hot", Severity::kWarning,
        Format("GPU {} is at {} C, close to where it slows down", gpu.index, gpu.temperature_c),
        {Of(gpu)}, "look after cooling");
  }
}

// AMD's architectures, and whether RCCL has to flush the host data path (HDP) before the network
// may read what a GPU has received.
void CheckArchitecture(const CheckInputs& facts, std::vector<Finding>* findings) {
  std::map<std::string, std::vector<int>> architectures;
  for (const host::Gpu& gpu : facts.machine.gpus) {
    if (gpu.vendor != host::Vendor::kAmd || gpu.architecture.empty()) continue;
    architectures[gpu.architecture.substr(0, gpu.architecture.find(':'))].push_back(gpu.index);
  }
  for (const auto& [name, indexes] : architectures) {
    std::string flush;
    if (name == "gfx906" || name == "gfx908") {
      flush = "; with GPUDirect RDMA RCCL flushes the HDP by itself";
    } else if (name == "gfx90a" || name.starts_with("gfx94")) {
      flush = "; RCCL needs no HDP flush";
    }
    AddFinding(findings, "gpu.architecture", Severity::kFine,
               GpuNames(indexes) + (indexes.size() == 1 ? " is " : " are ") + name + flush,
               {"/sys/class/kfd/kfd/topology/nodes: gfx_target_version"});
  }
}

}  // namespace

void CheckGpus(const CheckInputs& facts, std::vector<Finding>* findings) {
  CheckPresence(facts, findings);
  CheckArchitecture(facts, findings);
  std::vector<int> busy;
  std::vector<int> forgetful;
  std::vector<std::string> evidence;
  for (const host::Gpu& gpu : facts.machine.gpus) {
    CheckHealth(gpu, findings);
    if (gpu.memory_used > kMuchMemory && gpu.memory_used > gpu.memory_bytes / 50) {
      busy.push_back(gpu.index);
      evidence.push_back(Format("{}: {} of {}", Of(gpu), AboutBytes(gpu.memory_used),
                                AboutBytes(gpu.memory_bytes)));
    }
    // The mode is set only if the driver answered.
    if (gpu.vendor == host::Vendor::kNvidia && !gpu.mode.empty() && !gpu.persistence) {
      forgetful.push_back(gpu.index);
    }
  }
  if (!busy.empty()) {
    AddFinding(findings, "gpu.memory-used", Severity::kNote,
               GpuNames(busy) + (busy.size() == 1 ? " has" : " have") +
                   " memory in use: another process uses it, which affects measurements",
               evidence);
  }
  if (!forgetful.empty()) {
    AddFinding(findings, "gpu.persistence", Severity::kNote,
               "persistence mode is off: the first program after a pause waits for the driver",
               {GpuNames(forgetful)}, "run nvidia-persistenced");
  }
  for (const std::string& unknown : facts.machine.unknown) {
    AddFinding(findings, "gpu.unknown", Severity::kNote,
               "not everything about the GPUs could be found out", {unknown});
  }
}

}  // namespace diapason::doctor
