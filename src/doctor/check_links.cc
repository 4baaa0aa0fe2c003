#include <algorithm>

#include "base/text.h"
#include "doctor/checks.h"

namespace diapason::doctor {
namespace {

constexpr uint64_t kManyErrors = 100;

void CheckFabric(const CheckInputs& facts, std::vector<Finding>* findings) {
  std::vector<int> waiting;
  std::vector<std::string> evidence;
  for (const host::Gpu& gpu : facts.machine.gpus) {
    if (gpu.fabric_state.empty() || gpu.fabric_state == "completed") continue;
    waiting.push_back(gpu.index);
    evidence.push_back(Format("GPU {}: fabric state {}", gpu.index, gpu.fabric_state));
  }
  const bool no_manager = facts.system.switches && facts.system.fabric_manager == false;
  if (no_manager) evidence.emplace_back("/proc: no process nv-fabricmanager");
  if (!waiting.empty() || no_manager) {
    AddFinding(findings, "fabric.manager", Severity::kError,
               waiting.empty()
                   ? "this machine has NVSwitches, but the fabric manager does not run"
                   : GpuNames(waiting) + (waiting.size() == 1 ? " is" : " are") +
                         " not registered with the NVSwitch fabric: CUDA programs fail there",
               evidence, "systemctl start nvidia-fabricmanager, of the driver's very version");
  } else if (facts.system.switches) {
    AddFinding(findings, "fabric.manager", Severity::kFine,
               facts.system.fabric_manager.has_value()
                   ? "the NVSwitch fabric manager runs"
                   : "the NVSwitch fabric is the host's business; no GPU complains");
  }
}

}  // namespace

void CheckGpuLinks(const CheckInputs& facts, std::vector<Finding>* findings) {
  CheckFabric(facts, findings);
  const std::vector<host::Gpu>& gpus = facts.machine.gpus;
  if (gpus.size() < 2) return;
  const char* kind = facts.amd() ? "XGMI" : "NVLink";
  int most = 0;
  for (const host::Gpu& gpu : gpus) most = std::max(most, gpu.fabric_links);
  if (most == 0) {
    // Files contain no information about NVLink.
    if (!facts.live && !facts.amd()) return;
    AddFinding(findings, "link.none", Severity::kNote,
               Format("no {} link is up: GPUs reach each other over PCIe", kind),
               {Format("{} GPUs, 0 links", gpus.size())});
    return;
  }
  std::vector<int> fewer;
  std::vector<std::string> evidence;
  for (const host::Gpu& gpu : gpus) {
    if (gpu.fabric_links == most && gpu.fabric_links_down == 0) continue;
    fewer.push_back(gpu.index);
    evidence.push_back(Format("GPU {} ({}): {} up, {} down; the best has {}", gpu.index, gpu.pci,
                              gpu.fabric_links, gpu.fabric_links_down, most));
  }
  if (!fewer.empty()) {
    AddFinding(findings, "link.down", Severity::kWarning,
               Format("{} {} not all {} links up: rings and trees run at the slowest GPU's speed",
                      GpuNames(fewer), fewer.size() == 1 ? "has" : "have", kind),
               evidence,
               facts.amd() ? "reset the GPUs (amd-smi reset), then the machine"
                           : "nvidia-smi nvlink -s; reset the GPU, then look at its board");
  } else {
    AddFinding(findings, "link.up", Severity::kFine,
               Format("{} {} links up on every GPU", most, kind));
  }
  for (const host::Gpu& gpu : gpus) {
    if (gpu.fabric_errors == 0) continue;
    AddFinding(
        findings, "link.errors",
        gpu.fabric_errors > kManyErrors ? Severity::kWarning : Severity::kNote,
        Format("GPU {} has had errors on its {} links", gpu.index, kind),
        {Format("{} replays, recoveries and checksum errors since the driver was loaded",
                gpu.fabric_errors)},
        gpu.fabric_errors > kManyErrors ? "look whether they grow: nvidia-smi nvlink -e" : "");
  }
}

void CheckPci(const CheckInputs& facts, std::vector<Finding>* findings) {
  bool fine = false;
  for (const host::Gpu& gpu : facts.machine.gpus) {
    const host::PciLink& link = gpu.link;
    if (link.width == 0 || link.most_width == 0) continue;
    const std::string path = "/sys/bus/pci/devices/" + gpu.pci;
    if (link.width < link.most_width) {
      AddFinding(findings, "pcie.width", Severity::kWarning,
                 Format("GPU {} has {} of {} PCIe lanes", gpu.index, link.width, link.most_width),
                 {Format("{}/current_link_width: {} (max_link_width of both ends: {})", path,
                         link.width, link.most_width)},
                 "reseat the board or its riser; look at the slot's settings in the firmware");
      continue;
    }
    fine = true;
    // An idle GPU reduces its link speed to save power, so the speed counts under load only.
    const bool under_load = gpu.power_limit_w > 0 && gpu.power_w > 0.5 * gpu.power_limit_w;
    if (link.gts > 0 && link.gts < link.most_gts && under_load) {
      AddFinding(
          findings, "pcie.speed", Severity::kWarning,
          Format("GPU {} is under load, and its PCIe link runs at {:.3g} of {:.3g} GT/s", gpu.index,
                 link.gts, link.most_gts),
          {Format("{}/current_link_speed: {:.3g} GT/s, at {:.0f} W", path, link.gts, gpu.power_w)},
          "reseat the board; look at the slot's settings in the firmware");
    }
  }
  if (fine) {
    const host::PciLink& link = facts.machine.gpus[0].link;
    AddFinding(findings, "pcie.full", Severity::kFine,
               Format("PCIe links have all their lanes (x{}, up to {:.3g} GT/s)", link.width,
                      link.most_gts),
               {"/sys/bus/pci/devices/*/current_link_width"});
  }
}

}  // namespace diapason::doctor
